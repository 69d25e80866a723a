import { fileURLToPath } from 'node:url';

/** Path of a module beside the caller's, as a source file or as built. */
export function siblingModule(name: string, callerUrl: string): string {
  return fileURLToPath(new URL(`./${name}${callerUrl.endsWith('.ts') ? '.ts' : '.js'}`, callerUrl));
}
