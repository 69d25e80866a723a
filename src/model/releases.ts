/** One release of torch_npu: its packages (each named after the torch it is made for) and the CANN it came out with. */
export interface TorchNpuRelease {
  readonly release: string;
  readonly cann: string;
  readonly packages: readonly string[];
}

/**
 * Oldest first, from the release notes and READMEs of all release branches of Ascend/pytorch. The number jumps from 7.3 to 26.
 * A row of the newer READMEs that gives torch 1.8.1 for the package 1.5.0.post3 is a slip of theirs.
 */
export const TORCH_NPU_RELEASES: readonly TorchNpuRelease[] = [
  { release: '3.0.rc1', cann: '5.1.RC1', packages: ['1.5.0.post5', '1.8.1.rc1'] },
  { release: '3.0.rc2', cann: '5.1.RC2', packages: ['1.5.0.post6', '1.8.1.rc2'] },
  { release: '3.0.rc3', cann: '6.0.RC1', packages: ['1.11.0.rc1', '1.5.0.post7', '1.8.1.rc3'] },
  { release: '3.0.0', cann: '6.0.1', packages: ['1.11.0.rc2', '1.5.0.post8', '1.8.1'] },
  { release: '5.0.rc1', cann: '6.3.RC1', packages: ['1.11.0', '1.8.1.post1'] },
  { release: '5.0.rc2', cann: '6.3.RC2', packages: ['1.11.0.post1', '1.8.1.post2', '2.0.1.rc1'] },
  { release: '5.0.rc2.1', cann: '6.3.RC3', packages: ['1.11.0.post2'] },
  { release: '5.0.rc2.2', cann: '6.3.RC3.1', packages: ['1.11.0.post3'] },
  { release: '5.0.rc3', cann: '7.0.RC1', packages: ['1.11.0.post4', '2.0.1', '2.1.0.rc1'] },
  { release: '5.0.0', cann: '7.0.0', packages: ['1.11.0.post8', '2.0.1.post1', '2.1.0'] },
  { release: '6.0.rc1', cann: '8.0.RC1', packages: ['1.11.0.post11', '2.1.0.post3', '2.1.0.post4', '2.2.0'] },
  { release: '6.0.rc2', cann: '8.0.RC2', packages: ['1.11.0.post14', '2.1.0.post6', '2.2.0.post2', '2.3.1'] },
  { release: '6.0.rc3', cann: '8.0.RC3', packages: ['2.1.0.post8', '2.3.1.post2', '2.4.0'] },
  { release: '6.0.0', cann: '8.0.0', packages: ['2.1.0.post10', '2.3.1.post4', '2.4.0.post2'] },
  { release: '7.0.0', cann: '8.1.RC1', packages: ['2.1.0.post12', '2.3.1.post6', '2.4.0.post4', '2.5.1'] },
  { release: '7.1.0', cann: '8.2.RC1', packages: ['2.1.0.post13', '2.5.1.post1', '2.6.0'] },
  { release: '7.2.0', cann: '8.3.RC1', packages: ['2.1.0.post17', '2.6.0.post3', '2.7.1', '2.8.0'] },
  { release: '7.3.0', cann: '8.5.0', packages: ['2.6.0.post5', '2.7.1.post2', '2.8.0.post2', '2.9.0'] },
  { release: '26.0.0', cann: '9.0.0', packages: ['2.10.0', '2.7.1.post4', '2.8.0.post4', '2.9.0.post2'] },
  { release: '26.1.0', cann: '9.1.0', packages: ['2.10.0.post4', '2.11.0', '2.12.0', '2.7.1.post8', '2.9.0.post6'] },
];

/** Packages of development branches, without a release of their own. */
const PREVIEWS: readonly Omit<TorchNpuRelease, 'release'>[] = [
  { cann: '8.0.RC2.alpha002', packages: ['2.3.1rc1'] },
  { cann: '8.1.RC1.alpha002', packages: ['2.6.0rc1'] },
  { cann: '8.2.RC1.alpha002', packages: ['2.7.1rc1'] },
  { cann: '8.5.0', packages: ['2.10.0rc2', '2.11.0rc1', '2.12.0rc1'] },
];

/** Releases that are stated to work with several CANN families. */
const COMPATIBLE: readonly { readonly releases: readonly string[]; readonly families: readonly string[] }[] = [
  { releases: ['7.3.0', '26.0.0', '26.1.0'], families: ['8.5', '9.0', '9.1'] },
];

/** `2.7.1.post2+gitabc` → `2.7.1.post2`. */
export function packageOf(torchNpu: string): string {
  return torchNpu.trim().split('+')[0]!;
}

/** Torch version that a torch_npu package is made for; null for a name that is no package. */
export function torchOf(torchNpu: string): string | null {
  return /^(\d{1,3}\.\d{1,3}\.\d{1,3})(\.?(post|rc|dev)\d{1,10})?$/.exec(packageOf(torchNpu))?.[1] ?? null;
}

/** CANN editions differ in a suffix: the community edition of 8.0.RC3 is 8.0.RC3.beta1. Previews (alpha) are builds of their own. */
function editionOf(cann: string): string {
  return cann
    .trim()
    .toUpperCase()
    .replace(/\.BETA\d+$/, '');
}

function familyOf(cann: string): string {
  return /^\d+\.\d+/.exec(cann)?.[0] ?? cann;
}

/** How a package and a CANN version go together. older, newer: CANN is older or newer than what the package came out with. */
export type Pairing =
  | { readonly outcome: 'released' }
  | { readonly outcome: 'never'; readonly cann: 'older' | 'newer'; readonly expected: readonly string[] }
  | { readonly outcome: 'unknown' };

export function pairingOf(torchNpu: string, cann: string): Pairing {
  const name = packageOf(torchNpu);
  const edition = editionOf(cann);
  if (PREVIEWS.some((p) => p.packages.includes(name) && editionOf(p.cann) === edition)) return { outcome: 'released' };
  const own = TORCH_NPU_RELEASES.findIndex((r) => r.packages.includes(name));
  if (own === -1) return { outcome: 'unknown' };
  const { release, cann: expected } = TORCH_NPU_RELEASES[own]!;
  const families = COMPATIBLE.find((c) => c.releases.includes(release))?.families ?? [];
  if (editionOf(expected) === edition || families.includes(familyOf(edition))) return { outcome: 'released' };
  const other = TORCH_NPU_RELEASES.findIndex((r) => editionOf(r.cann) === edition);
  if (other === -1) return { outcome: 'unknown' };
  return {
    outcome: 'never',
    cann: other < own ? 'older' : 'newer',
    expected: families.length > 0 ? families.map((f) => `${f}.x`) : [expected],
  };
}

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
