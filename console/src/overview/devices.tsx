/** Devices of all three kinds, those seen last first. */

import type { ComponentChildren } from 'preact';
import { Badge } from '../parts/badge.tsx';
import { Empty } from '../parts/loaded.tsx';
import { numberText } from '../parts/number.ts';
import { Time, TimeAgo } from '../parts/time.tsx';
import type { Viewer } from './query.ts';

export const Trainers = ({ devices }: { devices: Viewer['dttDevices'] }) => (
  <Devices devices={devices} kind="trainer">
    {({ serialNumber, softwareVersion }) => ({
      name: serialNumber ? `Trainer ${serialNumber}` : 'Trainer without a serial number',
      more: softwareVersion && `Software ${softwareVersion}`,
    })}
  </Devices>
);

export const LockDevices = ({ devices }: { devices: Viewer['lkbxDevices'] }) => (
  <Devices devices={devices} kind="lock device">
    {({ macAddress, bubbleId, locked }) => ({
      name: macAddress || bubbleId,
      more: <Badge kind={locked ? 'accent' : 'plain'}>{locked ? 'Locked' : 'Open'}</Badge>,
    })}
  </Devices>
);

export const Ossms = ({ devices }: { devices: Viewer['ossmDevices'] }) => (
  <Devices devices={devices} kind="OSSM">
    {({ macAddress, bubbleId, chip, ...pairing }) => ({
      name: macAddress || bubbleId,
      more: (
        <>
          {`Chip ${chip}`}
          <Pairing {...pairing} />
        </>
      ),
    })}
  </Devices>
);

interface PairingProps {
  pairingCode?: string | null | undefined;
  pairingExpiresAt?: string | null | undefined;
}

function Pairing({ pairingCode, pairingExpiresAt }: PairingProps) {
  if (!pairingCode) return null;
  return (
    <>
      , pairing code <b>{pairingCode}</b>
      {pairingExpiresAt != null && (
        <>
          {' until '}
          <Time at={pairingExpiresAt} />
        </>
      )}
    </>
  );
}

interface DevicesProps<Device> {
  /** Null where the gateway does not say. */
  devices: { readonly totalCount: number; readonly nodes: readonly Device[] } | null | undefined;
  /** What one of them is. */
  kind: string;
  /** What one of them is called, and what else is known of it. */
  children(device: Device): { name: string; more: ComponentChildren };
}

interface Seen {
  readonly id: string;
  readonly lastVisitedAt?: string | null | undefined;
}

function Devices<Device extends Seen>({ devices, kind, children: describe }: DevicesProps<Device>) {
  if (!devices) return <Empty>Which there are is not known.</Empty>;
  const { nodes, totalCount } = devices;
  if (nodes.length === 0)
    return <Empty>No {kind} yet. One is here as soon as the service knows it as yours.</Empty>;
  return (
    <>
      <ul class="devices">
        {nodes.map((device) => {
          const { name, more } = describe(device);
          return (
            <li key={device.id}>
              <p class="lead">{name}</p>
              <p>{more}</p>
              <p class="hint">
                <LastSeen at={device.lastVisitedAt} />
              </p>
            </li>
          );
        })}
      </ul>
      {totalCount > nodes.length && <p class="hint">Those seen last, of {numberText(totalCount)} in all.</p>}
    </>
  );
}

function LastSeen({ at }: { at: Seen['lastVisitedAt'] }) {
  if (at == null) return 'Never seen so far';
  return (
    <>
      Last seen <TimeAgo at={at} />
    </>
  );
}
