import { f64, i32 } from '../base/columns.ts';
import type { ModuleCalls } from '../model/capture.ts';

const PREFIX = 'nn.Module: ';
/** Calls of modules kept of one rank: a large model has some thousands per step. */
const MAX_CALLS = 200_000;

/** Class of the module whose forward a Python function of this name is; null for other functions. The number after it counts instances. */
export function moduleClass(name: string): string | null {
  return name.startsWith(PREFIX) ? name.slice(PREFIX.length, PREFIX.length + 200).replace(/_\d+$/, '') : null;
}

/** True when the bytes of a name begin like a module's: decided for every Python function, so without making a text of it. */
export function isModule(bytes: Buffer, start: number, end: number): boolean {
  if (end - start <= PREFIX.length) return false;
  for (let i = 0; i < PREFIX.length; i++) if (bytes[start + i] !== PREFIX.charCodeAt(i)) return false;
  return true;
}

/** Forward calls of modules while they are read. */
export function moduleCalls(): { push(name: string, start: number, duration: number, tid: number): void; table(): ModuleCalls } {
  const start = f64(16);
  const duration = f64(16);
  const tid = i32(16);
  const name = i32(16);
  const names: string[] = [];
  const ids = new Map<string, number>();
  return {
    push(full, at, length, thread) {
      const own = moduleClass(full);
      if (own === null || start.length >= MAX_CALLS) return;
      let id = ids.get(own);
      if (id === undefined) {
        id = names.push(own) - 1;
        ids.set(own, id);
      }
      start.push(at);
      duration.push(length);
      tid.push(thread);
      name.push(id);
    },
    table: () => ({ start: start.take(), duration: duration.take(), tid: tid.take(), name: name.take(), names }),
  };
}
