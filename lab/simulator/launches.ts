import type { Capture } from './capture.ts';
import { commType } from './communication.ts';
import type { DeviceTask } from './des.ts';

/** A call in the CANN lane. */
export interface CannCall {
  level: 'acl' | 'node' | 'hccl' | 'runtime';
  id: string;
  mode: string;
  itemId: string;
  thread: 'main' | 'grad' | 'queue';
  start: number;
  end: number;
  connection: number;
}

/** How a task was launched: its CANN calls and the ids that join host and device. */
export interface Launch {
  task: DeviceTask;
  correlation: number;
  /** connection id of the device task */
  connection: number;
  /** start of the call that the HostToDevice flow leaves from */
  flowStart: number;
  calls: CannCall[];
}

const FIRST_CORRELATION = 8200;

/** CANN calls of every captured task, in launch order. Tasks launched before the capture have no calls. */
export function* launches(capture: Capture, level: 0 | 1 | 2): Generator<Launch> {
  let connection = 900;
  let correlation = FIRST_CORRELATION;
  const own = capture.tasks.filter((task) => task.step >= 0).sort((a, b) => a.dequeueStart - b.dequeueStart);
  for (const task of own) {
    const calls: CannCall[] = [];
    const start = task.dequeueStart + 1_700;
    const end = task.dequeueEnd - 800;
    const queue = { thread: 'queue' as const, itemId: '0' };
    if (task.kind === 'copy') {
      connection++;
      calls.push({ ...queue, level: 'acl', id: 'aclrtMemcpyAsync', mode: 'ACL_RTS', start, end, connection });
    } else if (task.kind === 'collective') {
      const type = commType(task);
      calls.push({ ...queue, level: 'acl', id: type, mode: 'HOST_HCCL', itemId: type, start, end, connection: ++connection });
      calls.push({ ...queue, level: 'node', id: '0', mode: 'launch', itemId: type, start, end, connection: ++connection });
      const ffts = end - Math.round((end - start) * 0.2);
      calls.push({ ...queue, level: 'hccl', id: 'Launch_Ffts', mode: 'master', start: ffts, end, connection });
    } else {
      const acl = { ...queue, level: 'acl' as const, start, end, connection: ++connection };
      // A slow host is still in the call when its kernel begins, never before the call.
      const node = Math.min(task.ready - 3_000, Math.max(end - 5_200, Math.round((start + end) / 2)));
      if (task.compileNs > 0) {
        calls.push({ ...acl, id: 'aclopCompileAndExecute', mode: 'ACL_OP' });
        calls.push({
          ...acl,
          id: 'opCompile',
          mode: 'ACL_OP',
          start: start + 4_000,
          end: start + task.compileNs,
          connection: ++connection,
        });
      } else {
        calls.push({ ...acl, id: task.acl, mode: 'ACL_NN' });
      }
      calls.push({
        ...queue,
        level: 'node',
        id: '0',
        mode: 'launch',
        itemId: task.kernel!.name,
        start: node,
        end: end - 400,
        connection: ++connection,
      });
      if (level === 2) {
        calls.push({ ...queue, level: 'runtime', id: 'KernelLaunchWithHandle', mode: '4', start: node + 600, end: end - 900, connection });
      }
    }
    const flowStart = (calls.find((call) => call.level === 'node') ?? calls[0]!).start;
    yield { task, correlation: correlation++, connection, flowStart, calls };
  }
}

/** CANN calls that launch nothing: workspace queries and synchronisations. */
export function* plainCalls(
  capture: Capture,
  apis: { id: string; mode: string; thread: CannCall['thread']; start: number; end: number }[],
  level: 0 | 1 | 2,
): Generator<CannCall> {
  let connection = 500_000;
  for (const op of capture.ops) {
    if (!op.name.startsWith('aclnn')) continue;
    const start = op.start + 600;
    const end = op.start + Math.max(1_500, Math.round((op.end - op.start) * 0.3));
    yield {
      level: 'acl',
      id: `${op.name}GetWorkspaceSize`,
      mode: 'ACL_NN',
      itemId: '0',
      thread: op.thread,
      start,
      end,
      connection: ++connection,
    };
  }
  for (const api of apis) {
    yield { level: 'acl', itemId: '0', ...api, connection: ++connection };
    const runtime = { aclrtSynchronizeStreamWithTimeout: 'StreamSynchronize', aclrtSynchronizeDevice: 'DeviceSynchronize' }[api.id];
    if (level === 2 && runtime) {
      const inner = { start: api.start + 700, end: Math.max(api.start + 700, api.end - 900) };
      yield { level: 'runtime', id: runtime, mode: '4', itemId: '0', thread: api.thread, ...inner, connection };
    }
  }
}

/** Name of a call in the CANN lane. */
export function cannName(call: CannCall): string {
  switch (call.level) {
    case 'node':
      return 'Node@launch';
    case 'hccl':
      return `Hccl@${call.id}`;
    case 'runtime':
      return `Runtime@${call.id}`;
    default:
      return `AscendCL@${call.id}`;
  }
}
