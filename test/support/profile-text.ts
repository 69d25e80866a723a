/* Small profiles written inline, for the oddities that real captures show. */
import { findRankFolders, readRank } from '../../src/importers/index.ts';
import type { RankCapture } from '../../src/model/capture.ts';
import type { ProfileEntry } from '../../src/sources/source.ts';

/** An entry held in memory, handed out in chunks of `chunk` bytes. */
export function entryOf(path: string, content: string | Buffer, chunk = 1 << 20): ProfileEntry {
  const bytes = Buffer.from(content);
  return { path, bytes: bytes.length, place: { file: path }, open: () => chunksOf(bytes, chunk) };
}

export async function* chunksOf(bytes: Buffer, size: number): AsyncGenerator<Buffer> {
  // The producer reuses one buffer, as the interface allows: whoever keeps a chunk must copy it.
  const shared = Buffer.alloc(size);
  for (let at = 0; at < bytes.length; at += size) {
    const part = bytes.subarray(at, at + size);
    part.copy(shared);
    yield shared.subarray(0, part.length);
  }
}

/** Reads the only rank folder of an upload given as path → content. */
export async function readOnly(files: Readonly<Record<string, string | Buffer>>, chunk?: number): Promise<RankCapture> {
  const { folders } = findRankFolders(Object.entries(files).map(([path, content]) => entryOf(path, content, chunk)));
  if (folders.length !== 1) throw new Error(`${folders.length} rank folders`);
  return readRank(folders[0]!, () => {});
}

/** µs since the epoch of the first event of the profiles here; 16 digits, as in real captures. */
export const ORIGIN = 1_736_413_971_000_000;

export function ts(us: number): string {
  return (ORIGIN + Math.floor(us)).toString() + (us - Math.floor(us)).toFixed(3).slice(1);
}

export interface TraceOptions {
  readonly steps?: number;
  readonly kernels?: number;
  readonly collectives?: boolean;
  /** Write `ts` as numbers, as in 2023. */
  readonly numeric?: boolean;
}

/** Events of a rank: a step of 10 ms with a fetch, kernels of 100 µs launched 20 µs before, and an all-reduce of 1 ms. */
export function traceEvents(options: TraceOptions = {}): object[] {
  const { steps = 1, kernels = 30, collectives = true, numeric = false } = options;
  const time = (us: number): string | number => (numeric ? ORIGIN + us : ts(us));
  const process = (pid: number, name: string): object => ({ ph: 'M', name: 'process_name', pid, tid: 0, args: { name } });
  const events: object[] = [
    process(1, 'Python'),
    process(2, 'CANN'),
    process(3, 'Ascend Hardware'),
    process(4, 'HCCL'),
    { ph: 'M', name: 'thread_name', pid: 4, tid: 0, args: { name: 'Group 0 Communication' } },
  ];
  for (let s = 0; s < steps; s++) {
    const at = s * 10_000;
    events.push({ ph: 'X', name: `ProfilerStep#${s + 5}`, pid: 1, tid: 11, ts: time(at), dur: 10_000, cat: 'cpu_op', args: {} });
    const loader = 'enumerate(DataLoader)#_MultiProcessingDataLoaderIter.__next__';
    events.push({ ph: 'X', name: loader, pid: 1, tid: 11, ts: time(at + 10), dur: 200, cat: 'cpu_op', args: {} });
    for (let k = 0; k < kernels; k++) {
      const start = at + 500 + k * 200;
      const id = String(s * 1000 + k + 1);
      const flow = { name: `HostToDevice${id}`, cat: 'HostToDevice', id };
      events.push(
        { ph: 's', ...flow, pid: 2, tid: 12, ts: time(start - 20) },
        { ph: 'f', bp: 'e', ...flow, pid: 3, tid: 7, ts: time(start) },
      );
      const args = { 'Task Type': 'AI_CORE', connection_id: Number(id) };
      events.push({ ph: 'X', name: `aclnnMatmul_MatMulV2_${k}`, pid: 3, tid: 7, ts: time(start), dur: 100.5, args });
    }
    if (collectives) {
      const args = { connection_id: 1, count: 1000, data_type: 'FP32' };
      events.push({ ph: 'X', name: `hcom_allReduce__586_${s}_1`, pid: 4, tid: 0, ts: time(at + 8000), dur: 1000.25, args });
    }
  }
  return events;
}

export const trace = (options?: TraceOptions): string => JSON.stringify(traceEvents(options));

/** kernel_details.csv that belongs to `traceEvents`, Level1 columns of 2025-01. */
export function kernelDetails(options: TraceOptions = {}): string {
  const { steps = 1, kernels = 30, collectives = true } = options;
  const rows = ['Step Id,Name,Type,OP State,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Dim,Input Shapes'];
  for (let s = 0; s < steps; s++) {
    const at = s * 10_000;
    for (let k = 0; k < kernels; k++)
      rows.push(`${s + 5},aclnnMatmul_MatMulV2_${k},MatMulV2,static,AI_CORE,${ts(at + 500 + k * 200)}\t,100.5,1.0,16,"""32,3;3,8"""`);
    if (collectives) rows.push(`${s + 5},hcom_allReduce__586_${s}_1,hcom_allReduce_,N/A,HCCL,${ts(at + 8000)}\t,1000.25,0.0,N/A,N/A`);
  }
  return `${rows.join('\n')}\n`;
}

export const STEP_HEADER =
  'Step,Computing,Communication(Not Overlapped),Overlapped,Communication,Free,Stage,Bubble,Communication(Not Overlapped and Exclude Receive),Preparing';
