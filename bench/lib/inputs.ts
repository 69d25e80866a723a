import { existsSync } from 'node:fs';
import { mkdir, readdir, rename, rm, stat } from 'node:fs/promises';
import { join } from 'node:path';
import { zipFolder } from '../../lab/demo/zip-folder.ts';
import { type Export, type JobSpec, simulate, writeProfiles } from '../../lab/simulator/index.ts';

/** A simulated job below `dir`, made once: the name must tell the spec. */
export async function profileFolder(dir: string, name: string, spec: JobSpec, kind: Export = 'text'): Promise<string> {
  const folder = join(dir, name);
  if (existsSync(folder)) return folder;
  const making = `${folder}.part`;
  await rm(making, { recursive: true, force: true });
  await mkdir(making, { recursive: true });
  await writeProfiles(simulate(spec), making, { export: kind });
  await rename(making, folder);
  return folder;
}

/** The folder as the zip that an upload makes of it. */
export async function zipped(folder: string): Promise<string> {
  const zip = `${folder}.zip`;
  if (existsSync(zip)) return zip;
  await zipFolder(folder, `${zip}.part`);
  await rename(`${zip}.part`, zip);
  return zip;
}

export async function bytesBelow(folder: string): Promise<number> {
  let total = 0;
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) total += (await stat(join(entry.parentPath, entry.name))).size;
  }
  return total;
}
