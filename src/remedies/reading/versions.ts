import type { L10n } from '../../model/lang.ts';
import { packageOf, TORCH_NPU_RELEASES } from '../../model/releases.ts';
import { both } from '../wording/bilingual.ts';

const ORDER = TORCH_NPU_RELEASES.map((r) => r.release);

/** The release that a torch_npu package belongs to; null for development builds and unknown packages. */
export function releaseOf(torchNpu: string | null): string | null {
  if (torchNpu === null) return null;
  const version = packageOf(torchNpu);
  if (ORDER.includes(version)) return version;
  return TORCH_NPU_RELEASES.find((r) => r.packages.includes(version))?.release ?? null;
}

/** Whether a torch_npu package is of that release or newer; null when it is not known. */
export function isReleaseAtLeast(torchNpu: string | null, release: string): boolean | null {
  const own = releaseOf(torchNpu);
  if (own === null) return null;
  return ORDER.indexOf(own) >= ORDER.indexOf(release);
}

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
