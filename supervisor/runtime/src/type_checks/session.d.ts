// Of sessions alone: what neither Node nor the web has.

/** Arguments of the run. */
declare var args: Record<string, any>;
declare var __ARGS__: Record<string, any>;

declare module "database" {
  type SqlValue = null | boolean | number | bigint | string | Uint8Array | ArrayBuffer | ArrayBufferView | Date | undefined;
  type SqlParameters = SqlValue[] | [SqlValue[]] | [Record<string, SqlValue>];
  export function configure(driver?: "sqlite3" | "sqlite", name?: string): void;
  export function query<T = Record<string, any>>(sql: string, ...parameters: SqlParameters): T[];
  export function exec(
    sql: string,
    ...parameters: SqlParameters
  ): { success: boolean; rowsAffected: number; lastInsertId: number | bigint };
  export function close(): void;
}

declare module "exec" {
  interface ExecOptions {
    input?: string | Uint8Array | null;
    /** A folder of the worktree. */
    cwd?: string;
    env?: Record<string, string>;
    /** `utf8` by default; null or `buffer`: bytes. */
    encoding?: string | null;
  }
  interface ExecResult<T> {
    code: number | null;
    signal: string | null;
    stdout: T;
    stderr: T;
    truncated: boolean;
    timedOut: boolean;
  }
  export function run(
    command: string,
    args: readonly string[] | undefined,
    options: ExecOptions & { encoding: null | "buffer" },
  ): ExecResult<Uint8Array>;
  export function run(command: string, args?: readonly string[], options?: ExecOptions): ExecResult<string>;
  export { run as exec };
}
