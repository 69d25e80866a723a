import type { StepTraceRow } from '../model/capture.ts';
import { cellNumber, cellText, findColumn, scanCsv } from './scan-csv.ts';

const MAX_ROWS = 1_000_000;

/** What a step table says beside its times. */
export interface StepTraceCells {
  /** `rank`, `stage` or null; stage rows are column maxima and no rank. */
  readonly type: string | null;
  readonly index: string | null;
}

export interface StepTraceResult {
  /** A column that held a negative time, as written; such a cell counts as missing. */
  readonly negative: string | null;
  /** Rows used when there are more; null when all are. */
  readonly limited: number | null;
  /** Row within which the file ends; it is not used. */
  readonly cutAt: number | null;
}

/** step_trace_time.csv and the cluster's copy of it; the unit is µs although the header does not say so. */
export async function scanStepTrace(
  chunks: AsyncIterable<Buffer>,
  onRow: (row: StepTraceRow, cells: StepTraceCells) => void,
): Promise<StepTraceResult> {
  let negative: string | null = null;
  let rows = 0;
  let cutAt: number | null = null;
  await scanCsv(chunks, (header) => {
    const column = (name: string): number => findColumn(header, name);
    const c = {
      step: findColumn(header, 'Step', 'Step ID', 'Step Id'),
      type: column('Type'),
      index: column('Index'),
      computing: column('Computing'),
      exposed: column('Communication(Not Overlapped)'),
      overlapped: column('Overlapped'),
      communication: column('Communication'),
      free: column('Free'),
      stage: column('Stage'),
      bubble: column('Bubble'),
      preparing: column('Preparing'),
      withoutReceive: column('Communication(Not Overlapped and Exclude Receive)'),
    };
    if (c.computing < 0 || c.exposed < 0 || c.free < 0) return null;
    return (row) => {
      // The times of a step only make sense together.
      if (row.cut) cutAt = row.line;
      if (row.cut || rows++ >= MAX_ROWS) return;
      const ms = (at: number): number => {
        const us = cellNumber(row, at) ?? Number.NaN;
        if (us >= 0) return us / 1000;
        if (us < 0) negative ??= header[at] ?? '';
        return Number.NaN;
      };
      ms(c.withoutReceive);
      const preparing = ms(c.preparing);
      const step = cellNumber(row, c.step);
      onRow(
        {
          step: step !== null && step >= 0 && Number.isInteger(step) ? step : null,
          computing: ms(c.computing),
          exposed: ms(c.exposed),
          overlapped: ms(c.overlapped),
          communication: ms(c.communication),
          free: ms(c.free),
          stage: ms(c.stage),
          bubble: ms(c.bubble),
          preparing: Number.isNaN(preparing) ? null : preparing,
          line: row.line,
        },
        { type: cellText(row, c.type)?.toLowerCase() ?? null, index: cellText(row, c.index) },
      );
    };
  });
  return { negative, limited: rows > MAX_ROWS ? MAX_ROWS : null, cutAt };
}
