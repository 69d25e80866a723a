import type { BreakdownRow } from '../../model/report.ts';
import { rowMs } from '../standing.ts';
import type { Kind } from './figure.ts';

/** What a step of one rank is made of, ms, in the order of the bars; the parts add up to the step. */
export function timeParts(row: BreakdownRow): { kind: Kind & ('computing' | 'exposed' | 'bubble' | 'idle'); ms: number }[] {
  const computing = Math.max(0, row.computingMs ?? 0);
  const exposed = Math.max(0, row.exposedCommunicationMs ?? 0);
  const bubble = Math.min(exposed, Math.max(0, row.bubbleMs ?? 0));
  return [
    { kind: 'computing', ms: computing },
    { kind: 'exposed', ms: exposed - bubble },
    { kind: 'bubble', ms: bubble },
    { kind: 'idle', ms: Math.max(0, rowMs(row)! - computing - exposed) },
  ];
}
