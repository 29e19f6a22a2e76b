/** Devices of all three kinds, those seen last first. */

import type { ComponentChildren } from 'preact';
import { Badge } from '../parts/badge.tsx';
import { Empty } from '../parts/loaded.tsx';
import { Time, TimeAgo } from '../parts/time.tsx';
import type { Viewer } from './query.ts';

type Devices = Pick<Viewer, 'dttDevices' | 'lkbxDevices' | 'ossmDevices'>;

export const Devices = ({ viewer: { dttDevices, lkbxDevices, ossmDevices } }: { viewer: Devices }) => (
  <>
    <Kind
      name="Trainers"
      empty="No trainer yet. One is here as soon as the service knows it as yours."
      devices={dttDevices}
    >
      {({ serialNumber, softwareVersion }) => ({
        name: serialNumber || 'Trainer without a serial number',
        more: softwareVersion && `Software ${softwareVersion}`,
      })}
    </Kind>
    <Kind
      name="Lock devices"
      empty="No lock device yet. One is here as soon as the service knows it as yours."
      devices={lkbxDevices}
    >
      {({ macAddress, bubbleId, locked }) => ({
        name: macAddress || bubbleId,
        more: <Badge kind={locked ? 'accent' : 'plain'}>{locked ? 'Locked' : 'Open'}</Badge>,
      })}
    </Kind>
    <Kind
      name="OSSMs"
      empty="No OSSM yet. One is here as soon as the service knows it as yours."
      devices={ossmDevices}
    >
      {({ macAddress, bubbleId, chip, pairingCode, pairingExpiresAt }) => ({
        name: macAddress || bubbleId,
        more: (
          <>
            {`Chip ${chip}`}
            {pairingCode && (
              <>
                {', '}pairing code <b>{pairingCode}</b>
                {pairingExpiresAt && (
                  <>
                    {' until '}
                    <Time at={pairingExpiresAt} />
                  </>
                )}
              </>
            )}
          </>
        ),
      })}
    </Kind>
  </>
);

interface KindProps<Device> {
  name: string;
  empty: string;
  /** Null where the gateway could not say. */
  devices: { readonly totalCount: number; readonly nodes: readonly Device[] } | null | undefined;
  /** What one of them is called, and what else is known of it. */
  children(device: Device): { name: string; more: ComponentChildren };
}

function Kind<Device extends { readonly id: string; readonly lastVisitedAt?: string | null | undefined }>({
  name,
  empty,
  devices,
  children: describe,
}: KindProps<Device>) {
  return (
    <section class="card third" aria-label={name}>
      <h2>
        {name}
        {devices && devices.totalCount > 1 && (
          <span class="hint"> {devices.totalCount.toLocaleString()}</span>
        )}
      </h2>
      {!devices && <Empty>Which there are is not known.</Empty>}
      {devices?.nodes.length === 0 && <Empty>{empty}</Empty>}
      <ul class="devices">
        {devices?.nodes.map((device) => {
          const { name, more } = describe(device);
          return (
            <li key={device.id}>
              <p class="lead">{name}</p>
              <p>{more}</p>
              <p class="hint">
                {device.lastVisitedAt == null ? (
                  'Never seen so far'
                ) : (
                  <>
                    Last seen <TimeAgo at={device.lastVisitedAt} />
                  </>
                )}
              </p>
            </li>
          );
        })}
      </ul>
    </section>
  );
}
