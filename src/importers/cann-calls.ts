/** CANN calls worth a row: what blocks the host, what compiles, what takes memory from the device or gives it back, what runs a graph. */
export const CANN_KEPT =
  /^(AscendCL@(aclrtSynchronize|aclrtMemcpy(?!Async)|aclopCompileAndExecute|opCompile|aclrt(Malloc|Free|MapMem|UnmapMem|ReserveMem|ReleaseMem)|aclMallocMem|aclmdl(RI)?Execute)|Runtime@.*Synchronize)/;

/** A call of a Python function is kept when it lasts this long, ns: shorter ones explain no gap, and there are as many as Python runs. */
export const LONG_FUNCTION = 1_000_000;
/** Calls of Python functions kept of one rank. */
export const MAX_FUNCTIONS = 20_000;
