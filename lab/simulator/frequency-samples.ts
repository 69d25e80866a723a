import type { Capture } from './capture.ts';
import { type Clock, NOMINAL_MHZ } from './frequency.ts';

/** Idle time before cores clock down, ns. */
const SETTLE_NS = 200_000;

/** Samples of the clock: at the beginning, at each change, at the end. */
export function* clockSamples(capture: Capture, clock: Clock | null): Generator<{ at: number; mhz: number }> {
  if (clock === null) {
    for (const at of [capture.begin, capture.end]) yield { at, mhz: NOMINAL_MHZ };
    return;
  }
  let mhz = clock.idle;
  yield { at: capture.begin, mhz };
  const spans = capture.lanes.computing;
  for (const [i, [start, end]] of spans.entries()) {
    if (mhz !== clock.busy) {
      mhz = clock.busy;
      yield { at: start, mhz };
    }
    const next = spans[i + 1]?.[0] ?? capture.end;
    if (next - end > SETTLE_NS && clock.idle !== clock.busy) {
      mhz = clock.idle;
      yield { at: end, mhz };
    }
  }
  yield { at: capture.end, mhz };
}
