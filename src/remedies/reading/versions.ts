import type { L10n } from '../../model/lang.ts';
import { both } from '../wording/bilingual.ts';

/**
 * Releases of torch_npu, oldest first, and the packages each one published. A profile records the package
 * (`2.7.1.post2`); documentation counts in releases (`7.3.0`). The release number jumps from 7.3 to 26.
 */
const PACKAGES: Readonly<Record<string, readonly string[]>> = {
  '3.0.rc1': ['1.8.1.rc1'],
  '3.0.rc2': ['1.8.1.rc2'],
  '3.0.rc3': ['1.11.0.rc1', '1.8.1.rc3'],
  '3.0.0': ['1.11.0.rc2', '1.8.1'],
  '5.0.rc1': ['1.11.0', '1.8.1.post1'],
  '5.0.rc2': ['1.11.0.post1', '1.8.1.post2', '2.0.1.rc1'],
  '5.0.rc2.1': ['1.11.0.post2'],
  '5.0.rc2.2': ['1.11.0.post3'],
  '5.0.rc3': ['1.11.0.post4', '2.0.1', '2.1.0.rc1'],
  '5.0.0': ['1.11.0.post8', '2.0.1.post1', '2.1.0'],
  '6.0.rc1': ['1.11.0.post11', '2.1.0.post3', '2.1.0.post4', '2.2.0'],
  '6.0.rc2': ['1.11.0.post14', '2.1.0.post6', '2.2.0.post2', '2.3.1'],
  '6.0.rc3': ['2.1.0.post8', '2.3.1.post2', '2.4.0'],
  '6.0.0': ['2.1.0.post10', '2.3.1.post4', '2.4.0.post2'],
  '7.0.0': ['2.1.0.post12', '2.3.1.post6', '2.4.0.post4', '2.5.1'],
  '7.1.0': ['2.1.0.post13', '2.5.1.post1', '2.6.0'],
  '7.2.0': ['2.1.0.post17', '2.6.0.post3', '2.7.1', '2.8.0'],
  '7.3.0': ['2.6.0.post5', '2.7.1.post2', '2.8.0.post2', '2.9.0'],
  '26.0.0': ['2.10.0', '2.7.1.post4', '2.8.0.post4', '2.9.0.post2'],
  '26.1.0': ['2.10.0.post4', '2.11.0', '2.12.0', '2.7.1.post8', '2.9.0.post6'],
};

const ORDER = Object.keys(PACKAGES);

/** The release that a torch_npu package belongs to; null for development builds and unknown packages. */
export function releaseOf(torchNpu: string | null): string | null {
  if (torchNpu === null) return null;
  const version = torchNpu.trim().split('+')[0]!;
  if (ORDER.includes(version)) return version;
  return ORDER.find((release) => PACKAGES[release]!.includes(version)) ?? null;
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
