import type { L10n } from '../../model/lang.ts';
import { isReleaseAtLeast, releaseOf } from '../../model/releases.ts';
import { both } from '../wording/bilingual.ts';

export { isReleaseAtLeast, releaseOf };

/** Whether a torch version is at least `major.minor`; null when it is not known. */
export function isTorchAtLeast(torch: string | null, major: number, minor: number): boolean | null {
  const match = /^(\d{1,3})\.(\d{1,3})/.exec(torch ?? '');
  if (match === null) return null;
  const [ownMajor, ownMinor] = [Number(match[1]), Number(match[2])];
  return ownMajor > major || (ownMajor === major && ownMinor >= minor);
}

/** What to add in brackets where an option needs a release: nothing when it is there, null when the one in use is older. */
export function sinceNote(torchNpu: string | null, release: string): L10n | null {
  const known = isReleaseAtLeast(torchNpu, release);
  if (known === false) return null;
  return known ? both('', '') : both(` (torch_npu ${release} or newer)`, `（torch_npu ${release} 及以上）`);
}
