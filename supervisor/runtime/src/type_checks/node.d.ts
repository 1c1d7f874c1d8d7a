// What sessions have of Node, where there is no package @types/node. Its modules are `any` then.

declare function setImmediate<A extends any[]>(callback: (...args: A) => void, ...args: A): any;
declare function clearImmediate(immediate?: any): void;
declare var require: {
  (name: string): any;
  resolve(name: string): string;
  cache: Record<string, any>;
  main: any;
};
declare var module: { exports: any; id: string; filename: string; loaded: boolean; children: any[]; paths: string[] };
declare var exports: any;
declare var __filename: string;
declare var __dirname: string;
declare var global: typeof globalThis;
declare var process: {
  argv: string[];
  env: Record<string, string | undefined>;
  exitCode: number | string | undefined;
  exit(code?: number): never;
  nextTick<A extends any[]>(callback: (...args: A) => void, ...args: A): void;
  hrtime: { (since?: [number, number]): [number, number]; bigint(): bigint };
  memoryUsage(): Record<string, number>;
  cwd(): string;
  platform: string;
  versions: Record<string, string>;
  stdin: any;
  stdout: any;
  stderr: any;
  on(event: string, listener: (...args: any[]) => void): any;
  [name: string]: any;
};
interface Buffer extends Uint8Array<ArrayBuffer> {
  toString(encoding?: string, start?: number, end?: number): string;
  equals(other: Uint8Array): boolean;
  write(text: string, offset?: number, length?: number, encoding?: string): number;
  [name: string]: any;
}
declare var Buffer: {
  from(value: any, encoding?: any, length?: number): Buffer;
  alloc(size: number, fill?: any, encoding?: string): Buffer;
  allocUnsafe(size: number): Buffer;
  concat(list: readonly Uint8Array[], length?: number): Buffer;
  byteLength(value: any, encoding?: string): number;
  compare(a: Uint8Array, b: Uint8Array): number;
  isBuffer(value: any): value is Buffer;
  isEncoding(name: any): boolean;
};
interface ImportMeta {
  url: string;
  filename: string;
  dirname: string;
  resolve(name: string): string;
}
declare module "node:*";
declare module "assert";
declare module "assert/strict";
declare module "async_hooks";
declare module "buffer";
declare module "constants";
declare module "crypto";
declare module "diagnostics_channel";
declare module "events";
declare module "fs";
declare module "fs/promises";
declare module "http";
declare module "https";
declare module "module";
declare module "os";
declare module "path";
declare module "perf_hooks";
declare module "process";
declare module "punycode";
declare module "querystring";
declare module "readline";
declare module "readline/promises";
declare module "stream";
declare module "stream/consumers";
declare module "stream/promises";
declare module "stream/web";
declare module "string_decoder";
declare module "timers";
declare module "timers/promises";
declare module "tty";
declare module "url";
declare module "util";
declare module "util/types";
declare module "zlib";
