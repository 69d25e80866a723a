import type { CaptureSettings } from '../model/capture.ts';

/** Settings of a capture whose settings file is missing: nothing is known. */
export const EMPTY_SETTINGS: CaptureSettings = {
  framework: null,
  level: null,
  aicMetrics: null,
  withStack: null,
  withModules: null,
  recordShapes: null,
  profileMemory: null,
  l2Cache: null,
  gcThreshold: null,
  cpuActivity: null,
  npuActivity: null,
  schedule: null,
  cann: null,
  torchNpu: null,
  torch: null,
  soc: null,
  deviceMemory: null,
  env: {},
  stopped: null,
};
