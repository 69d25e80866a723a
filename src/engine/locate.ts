import type { Frame } from '../model/capture.ts';
import type { Location } from '../model/report.ts';
import type { SourceTree } from '../model/source-tree.ts';
import { toldLocation } from '../report/build.ts';
import { couldBeHere, matchStack } from '../source/match-frame.ts';

/** Frames asked about at most; a report names fewer. */
const MAX_MISSING = 64;

/** Files that frames name and the source does not hold, as the profile writes them. */
export function missingFiles(source: SourceTree, frames: readonly Frame[]): string[] {
  const files = new Set<string>();
  for (const frame of frames) {
    if (matchStack(source, frame).length > 0) continue;
    for (const { file } of [frame, ...(frame.installed ?? []), ...(frame.outer ?? [])]) if (couldBeHere(file)) files.add(file);
  }
  return [...files].slice(0, MAX_MISSING);
}

/**
 * Places of a finding, by the frames of the profile: the line of the repository where the call is proven to stand; several where
 * they fit equally, after what the profile says; else what the profile says alone.
 */
export function locate(source: SourceTree, frames: readonly Frame[]): Location[] {
  const locations: Location[] = [];
  const add = (location: Location): void => {
    if (!locations.some((other) => other.file === location.file && other.line === location.line)) locations.push(location);
  };
  for (const frame of frames) {
    const places = matchStack(source, frame);
    const told = frame.isInstalled === true ? null : toldLocation(frame);
    const [only] = places;
    if (places.length === 1 && only !== undefined) {
      add({ ...only, provenBy: 'call-stack' });
      continue;
    }
    if (told !== null) add(told);
    for (const place of places) add({ ...place, provenBy: 'syntax', oneOf: places.length });
  }
  return locations;
}
