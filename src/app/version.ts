import { readFileSync } from 'node:fs';

function readVersion(): string {
  // Beside package.json as a source file (src/app) and as built (dist/app or dist/src/app).
  for (const up of ['../../package.json', '../../../package.json']) {
    try {
      const parsed = JSON.parse(readFileSync(new URL(up, import.meta.url), 'utf8')) as { name?: string; version?: string };
      if (parsed.name === 'npu-advisor' && parsed.version !== undefined) return parsed.version;
    } catch {
      // Not there; try the next place.
    }
  }
  return '0.0.0';
}

/** Version of this build. */
export const VERSION = readVersion();
