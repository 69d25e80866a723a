import type { CaptureSettings, InputRecord } from '../model/capture.ts';
import type { L10n, Message } from '../model/lang.ts';
import type { ProfileEntry } from '../sources/source.ts';

/** What the profiler printed while it recorded and parsed, kept beside the profile. */
export interface ParserLog {
  readonly stopped: CaptureSettings['stopped'];
  readonly record: InputRecord;
}

/** `logs/` of a rank folder, and what people redirect it to. */
const LOG = /(^|\/)(logs\/[^/]+\.(log|txt)|[^/]*(profil|warning)[^/]*\.(log|txt))$/i;

export function isParserLog(path: string): boolean {
  return LOG.test(path);
}

/** Logs of whole trainings grow large; the profiler writes at the start and at the end of its work, but nobody knows where that is. */
const MAX_BYTES = 64 << 20;

type Stopped = NonNullable<CaptureSettings['stopped']>;

/** Messages of torch_npu and MindSpore, word for word. */
const STOPPED = /Stop profiler while current state is (RECORD_AND_SAVE|RECORD|WARMUP)(?=[^A-Z_])/g;
const NO_FLOWS = 'Failed to get acl to npu flow events';
const DAEMON = 'cannot be parsed during the daemon process';
/** Longest of them; a message may lie on the border of two chunks. */
const OVERLAP = 200;

const NOTE: Readonly<Record<Stopped | 'flows' | 'daemon' | 'quiet' | 'large' | 'unreadable', L10n>> = {
  WARMUP: {
    en: 'says that the profiler was stopped in its warm-up: nothing was recorded; run more steps, at least wait + warmup + active',
    zh: '显示 profiler 在预热中被停止：没有采集到数据；增加迭代数，至少为 wait + warmup + active',
  },
  RECORD: {
    en: 'says that the profiler was stopped while it recorded: the last step may be cut; call `prof.step()` once more before it stops',
    zh: '显示 profiler 在采集中被停止：最后一个迭代可能不完整；停止前多调用一次 `prof.step()`',
  },
  RECORD_AND_SAVE: {
    en: 'says that the profiler was stopped in the last step of its schedule',
    zh: '显示 profiler 在 schedule 的最后一个迭代中被停止',
  },
  flows: {
    en: 'says that host calls could not be joined with device tasks: kernels may lack their step and their launch',
    zh: '显示 Host 调用与设备任务无法关联：kernel 可能缺少所属迭代与下发',
  },
  daemon: {
    en: 'says that a daemon process cannot parse: run `torch_npu.profiler.profiler.analyse(path)` afterwards',
    zh: '显示守护进程无法解析：事后执行 `torch_npu.profiler.profiler.analyse(path)`',
  },
  quiet: { en: 'names no problem of the capture', zh: '没有提到采集问题' },
  large: { en: 'only its first 64 MB are read', zh: '只读取其前 64 MB' },
  unreadable: { en: 'could not be read', zh: '无法读取' },
};

export async function readParserLog(entry: ProfileEntry): Promise<ParserLog> {
  const stops = new Set<Stopped>();
  let flows = false;
  let daemon = false;
  let size = 0;
  let before = '';
  const done = (status: InputRecord['status'], text: L10n): ParserLog => {
    const note: Message = { text };
    const stopped = stops.has('RECORD')
      ? 'RECORD'
      : stops.has('WARMUP')
        ? 'WARMUP'
        : stops.has('RECORD_AND_SAVE')
          ? 'RECORD_AND_SAVE'
          : null;
    return { stopped, record: { path: entry.path, kind: 'parser log', bytes: entry.bytes, status, note } };
  };
  const look = (text: string): void => {
    for (const found of text.matchAll(STOPPED)) stops.add(found[1] as Stopped);
    flows ||= text.includes(NO_FLOWS);
    daemon ||= text.includes(DAEMON);
    before = text.slice(-OVERLAP);
  };
  try {
    for await (const chunk of entry.open()) {
      look(before + chunk.toString('latin1'));
      size += chunk.length;
      if (size >= MAX_BYTES) break;
    }
    look(`${before}\n`);
  } catch {
    return done('refused', NOTE.unreadable);
  }
  for (const stop of ['RECORD', 'WARMUP', 'RECORD_AND_SAVE'] as const) if (stops.has(stop)) return done('used', NOTE[stop]);
  if (flows) return done('used', NOTE.flows);
  if (daemon) return done('used', NOTE.daemon);
  return size >= MAX_BYTES ? done('partial', NOTE.large) : done('used', NOTE.quiet);
}
