/** CANN calls worth a row: what blocks the host, what compiles. */
export const CANN_KEPT =
  /^(AscendCL@(aclrtSynchronize|aclrtMemcpy(?!Async)|aclopCompileAndExecute|opCompile|aclrt(Malloc|Free)|aclMallocMem)|Runtime@.*Synchronize)/;
