/** Pages of the loopback GitHub. */
import type { HubState } from '../state.ts';

/** A page ready to be written. */
export interface Page {
  status: number;
  headers: { [name: string]: string };
  body: string;
}

/** The page at a path. */
export function servePage(_state: HubState, _method: string, _path: string): Page {
  return { status: 404, headers: { 'content-type': 'text/plain' }, body: 'Not Found' };
}
