import { expect, test } from 'vitest';
import { createInterner } from '../../src/base/interner.ts';
import { createOrigin } from '../../src/importers/ascend-text/origin.ts';
import { readTrace } from '../../src/importers/ascend-text/read-trace.ts';

const STEPS = 40;
const OPS = 30;

function* events(): Generator<object> {
  yield { ph: 'M', name: 'process_name', pid: 1, args: { name: 'Python' } };
  yield { ph: 'M', name: 'process_name', pid: 2, args: { name: 'Ascend Hardware' } };
  const at = (step: number, op: number): string => `${1_000_000 + step * 1_000 + op * 10}.000`;
  for (let step = 0; step < STEPS; step++) {
    yield { ph: 'X', name: `ProfilerStep#${step}`, pid: 1, tid: 1, ts: at(step, 0), dur: 990, cat: 'cpu_op', args: {} };
    for (let op = 0; op < OPS; op++)
      yield { ph: 'X', name: 'aten::add', pid: 1, tid: 1, ts: at(step, op), dur: 5, cat: 'cpu_op', args: {} };
  }
  for (let step = 0; step < STEPS; step++) {
    for (let op = 0; op < OPS; op++) {
      const id = step * OPS + op;
      yield { ph: 's', name: 'HostToDevice', cat: 'HostToDevice', id: `${id}`, pid: 1, tid: 1, ts: at(step, op) };
      yield { ph: 'f', name: 'HostToDevice', cat: 'HostToDevice', id: `${id}`, pid: 2, tid: 7, ts: at(step, op + 1) };
      yield { ph: 'X', name: 'Add', pid: 2, tid: 7, ts: at(step, op + 1), dur: 3, args: { 'Task Type': 'AI_CORE' } };
    }
  }
}

async function* chunks(): AsyncGenerator<Buffer> {
  yield Buffer.from(JSON.stringify([...events()]));
}

test('a trace longer than what is kept: its first steps, whole, with all their tasks and launches', async () => {
  const all = await readTrace([chunks()], createOrigin(), createInterner());
  expect(all.limited).toBe(null);
  expect(all.tables.steps.length).toBe(STEPS);
  const some = await readTrace([chunks()], createOrigin(), createInterner(), 700);
  expect(some.limited).toMatchObject({ all: STEPS });
  const { steps, device, launches } = some.tables;
  expect(steps.length).toBe(some.limited!.kept);
  expect(steps.length).toBeGreaterThan(3);
  expect(steps.length).toBeLessThan(STEPS / 2);
  const end = steps.at(-1)!.start + steps.at(-1)!.duration;
  const inside = (start: Float64Array): number => start.filter((at) => at < end - 10_000).length;
  expect(inside(device.start)).toBe(inside(all.tables.device.start));
  expect(inside(some.tables.host.start)).toBe(inside(all.tables.host.start));
  for (const at of device.start) expect(launches.get(7)!.get(at)).toBe(all.tables.launches.get(7)!.get(at));
  expect(some.tables.host.name.length + device.name.length).toBeLessThanOrEqual(700);
});

test('a trace with everything at one instant is bounded, too', async () => {
  const one = JSON.stringify({ ph: 'X', name: 'a', pid: 1, tid: 1, ts: '5.000', dur: 1, cat: 'cpu_op', args: {} });
  async function* same(): AsyncGenerator<Buffer> {
    yield Buffer.from(`[${Array.from({ length: 2_000 }, () => one).join(',')}]`);
  }
  const { tables, limited } = await readTrace([same()], createOrigin(), createInterner(), 100);
  expect(limited).toEqual({ kept: 0, all: 0 });
  expect(tables.host.name.length).toBeLessThanOrEqual(101);
});
