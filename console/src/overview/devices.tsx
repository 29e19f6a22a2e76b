/** The devices of all three kinds, each list in the order in which they were last seen. */

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
      details: softwareVersion && `Software ${softwareVersion}`,
    })}
  </Devices>
);

export const LockDevices = ({ devices }: { devices: Viewer['lkbxDevices'] }) => (
  <Devices devices={devices} kind="lock device">
    {({ macAddress, bubbleId, locked }) => ({
      name: macAddress || bubbleId,
      details: <Badge kind={locked ? 'accent' : 'plain'}>{locked ? 'Locked' : 'Open'}</Badge>,
    })}
  </Devices>
);

export const Ossms = ({ devices }: { devices: Viewer['ossmDevices'] }) => (
  <Devices devices={devices} kind="OSSM">
    {({ macAddress, bubbleId, chip, ...pairing }) => ({
      name: macAddress || bubbleId,
      details: (
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
  /** Null if the gateway could not read them. */
  devices: { readonly totalCount: number; readonly nodes: readonly Device[] } | null | undefined;
  /** What one device of the list is. */
  kind: string;
  /** Gives the name of a device, and what is shown below it. */
  children(device: Device): { name: string; details: ComponentChildren };
}

interface ListedDevice {
  readonly id: string;
  readonly lastVisitedAt?: string | null | undefined;
}

function Devices<Device extends ListedDevice>({ devices, kind, children: describe }: DevicesProps<Device>) {
  if (!devices) return <Empty>The list is not available now.</Empty>;
  const { nodes, totalCount } = devices;
  if (nodes.length === 0)
    return <Empty>No {kind} yet. Each appears here as soon as it belongs to your account.</Empty>;
  return (
    <>
      <ul>
        {nodes.map((device) => {
          const { name, details } = describe(device);
          return (
            <li key={device.id}>
              <p class="lead">{name}</p>
              <p>{details}</p>
              <p class="hint">
                <LastSeen at={device.lastVisitedAt} />
              </p>
            </li>
          );
        })}
      </ul>
      {totalCount > nodes.length && (
        <p class="hint">
          The {nodes.length} last seen of {numberText(totalCount)}.
        </p>
      )}
    </>
  );
}

function LastSeen({ at }: { at: ListedDevice['lastVisitedAt'] }) {
  if (at == null) return 'Never seen';
  return (
    <>
      Last seen <TimeAgo at={at} />
    </>
  );
}
