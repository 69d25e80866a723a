import type { Column } from '../base/columns.ts';
import { sortedRows } from '../base/lookup.ts';
import { TO_DEVICE, TO_HOST, type TraceTables, UNKNOWN_DIRECTION } from '../model/capture.ts';

/** Direction of a copy as the exports name it, e.g. `host to device`. */
export function directionOf(name: string): number {
  if (/^host to device/i.test(name)) return TO_DEVICE;
  return /^device to host/i.test(name) ? TO_HOST : UNKNOWN_DIRECTION;
}

interface CopyColumns {
  readonly start: Column<Float64Array>;
  readonly bytes: Column<Float64Array>;
  readonly direction: Column<Int32Array>;
}

/** Copies in order of their start. */
export function copiesOf({ start, bytes, direction }: CopyColumns): TraceTables['copies'] {
  const order = sortedRows(start.length, (a, b) => start.at(a) - start.at(b) || a - b);
  return { start: start.take(order), bytes: bytes.take(order), direction: new Uint8Array(direction.take(order)) };
}
