// Global in sessions and in programs.

interface Console {
  log(...values: any[]): void;
  info(...values: any[]): void;
  warn(...values: any[]): void;
  error(...values: any[]): void;
  debug(...values: any[]): void;
  trace(...values: any[]): void;
  assert(condition?: any, ...values: any[]): void;
  count(label?: string): void;
  countReset(label?: string): void;
  dir(value: any, options?: { depth?: number | null; [option: string]: any }): void;
  dirxml(...values: any[]): void;
  group(...label: any[]): void;
  groupCollapsed(...label: any[]): void;
  groupEnd(): void;
  table(data: any, columns?: readonly string[]): void;
  time(label?: string): void;
  timeLog(label?: string, ...values: any[]): void;
  timeEnd(label?: string): void;
  clear(): void;
}
declare var console: Console;
