import type { ProfileEntry } from '../sources/source.ts';
import { leaf, parent, type RankFolder } from './rank-folders.ts';
import { findColumn } from './scan-csv.ts';
import { asUtf8 } from './text-encoding.ts';

const HEAD = 64 * 1024;
/** Files of an upload whose content is looked at. */
const MAX_LOOKED_AT = 2_000;
const GPU = /"(cudaLaunchKernel\w*|cudaMemcpyAsync|hipLaunchKernel\w*)"|"deviceProperties"|"cat"\s*:\s*"(kernel|cuda_runtime|gpu_memcpy)"/;

/** How torch.profiler names its traces on a GPU, and lanes that only an Ascend trace has. */
const GPU_NAME = /\.pt\.trace\.json$/i;
const ASCEND_LANE = /"(CANN|Ascend Hardware|Overlap Analysis)"/;

/** A file that is recognised by its content: the name in the text export that it is read as, or that it shows a GPU. */
type Role =
  | 'trace_view.json'
  | 'kernel_details.csv'
  | 'step_trace_time.csv'
  | 'communication.json'
  | 'communication_matrix.json'
  | Side
  | 'gpu';
type Side = 'op_statistic.csv' | 'api_statistic.csv' | 'operator_details.csv';

/** What tells of the device, or of collectives; the other roles only add to it. */
const PRIMARY: readonly Role[] = ['trace_view.json', 'kernel_details.csv', 'step_trace_time.csv', 'communication.json'];

export interface LoneFiles {
  readonly folders: RankFolder[];
  /** Traces of a GPU: something to compare with, nothing to diagnose. */
  readonly gpu: ProfileEntry[];
  readonly rest: ProfileEntry[];
}

/** Tables and traces that lie about under any name. Those of one folder are one rank, unless two of them are of one kind. */
export async function findLoneFiles(entries: readonly ProfileEntry[]): Promise<LoneFiles> {
  const roles = new Map<ProfileEntry, Role>();
  for (const entry of entries.filter((e) => /\.(json|csv)$/i.test(e.path)).slice(0, MAX_LOOKED_AT)) {
    const role = await roleOf(entry);
    if (role !== null) roles.set(entry, role);
  }
  const folders: RankFolder[] = [];
  const byFolder = Map.groupBy(
    [...roles.keys()].filter((e) => roles.get(e) !== 'gpu'),
    (e) => parent(e.path),
  );
  for (const [folder, own] of byFolder) {
    const primary = own.filter((e) => PRIMARY.includes(roles.get(e)!));
    const kinds = new Set(primary.map((e) => roles.get(e)));
    if (primary.length === 0) continue;
    if (kinds.size === primary.length) folders.push(asFolder(folder, own, roles));
    else for (const entry of primary) folders.push(asFolder(entry.path, [entry], roles));
  }
  const taken = new Set(folders.flatMap((f) => f.entries));
  const gpu = entries.filter((e) => roles.get(e) === 'gpu');
  return { folders, gpu, rest: entries.filter((e) => !taken.has(e) && roles.get(e) !== 'gpu') };
}

function asFolder(folder: string, entries: readonly ProfileEntry[], roles: ReadonlyMap<ProfileEntry, Role>): RankFolder {
  return { folder, entries, readAs: Object.fromEntries(entries.map((e) => [e.path, roles.get(e)!])) };
}

async function roleOf(entry: ProfileEntry): Promise<Role | null> {
  const head = await headOf(entry);
  return /\.json$/i.test(leaf(entry.path)) ? jsonRole(head, leaf(entry.path)) : csvRole(head);
}

/** Text at the start of a file; '' when it cannot be read. */
async function headOf(entry: ProfileEntry): Promise<string> {
  let text = '';
  try {
    for await (const chunk of asUtf8(entry.open(), () => {})) {
      text += chunk.toString('utf8', 0, Math.min(HEAD, chunk.length));
      if (text.length >= HEAD) break;
    }
  } catch {
    return text;
  }
  return text.replace(/^\ufeff/, '');
}

function jsonRole(head: string, name: string): Role | null {
  if (/^,?\s*[[{]/.test(head.trimStart()) && /"ph"\s*:/.test(head)) {
    const isGpu = GPU.test(head) || (GPU_NAME.test(name) && !ASCEND_LANE.test(head));
    return isGpu ? 'gpu' : 'trace_view.json';
  }
  if (/"Communication Time Info"/.test(head)) return 'communication.json';
  return /"Transport Type"/.test(head) ? 'communication_matrix.json' : null;
}

function csvRole(head: string): Role | null {
  const line = head.slice(0, head.search(/\r?\n|$/)).split(',');
  const header = line.map((cell) => cell.trim().replace(/^"|"$/g, '').trim());
  const has = (...names: string[]): boolean => findColumn(header, ...names) !== -1;
  if (has('Name', 'Op Name', 'Kernel Name') && has('Duration(us)', 'Task Duration(us)') && has('Start Time(us)', 'Task Start Time(us)')) {
    return 'kernel_details.csv';
  }
  if (has('Computing') && has('Free') && has('Communication(Not Overlapped)')) return 'step_trace_time.csv';
  if (has('Host Total Duration(us)')) return 'operator_details.csv';
  if (has('API Name') && has('Time(us)')) return 'api_statistic.csv';
  return has('OP Type') && has('Total Time(us)') ? 'op_statistic.csv' : null;
}
