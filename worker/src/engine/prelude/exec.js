// The `exec` host module: commands that the operator listed and the template names. `native.exec(…)` asks the host and
// throws nothing: it gives [result] or [undefined, code, message].
0,function (native, captured) {
  'use strict';
  const { isArray, from } = Array;
  const { keys, freeze } = Object;
  const Bytes = Uint8Array;
  const empty = new Bytes(0);
  const signals = { __proto__: null, 1: 'SIGHUP', 2: 'SIGINT', 3: 'SIGQUIT', 4: 'SIGILL', 5: 'SIGTRAP', 6: 'SIGABRT',
    7: 'SIGBUS', 8: 'SIGFPE', 9: 'SIGKILL', 11: 'SIGSEGV', 13: 'SIGPIPE', 14: 'SIGALRM', 15: 'SIGTERM', 24: 'SIGXCPU',
    25: 'SIGXFSZ', 31: 'SIGSYS' };

  captured.defineModule(['exec'], () => {
    const text = (value, name) => {
      if (typeof value === 'string') return value;
      throw captured.invalidType(`The "${name}" argument must be of type string. Received ${typeof value}`);
    };
    const run = (command, args = [], options = {}) => {
      if (!isArray(args)) throw captured.invalidType('The "args" argument must be an array of strings.');
      const { input, cwd = '', env = {}, encoding = 'utf8' } = options ?? {};
      const bytes = input === undefined || input === null ? empty
        : typeof input === 'string' ? native.encode(input, 'utf8')
        : input instanceof Bytes ? input : undefined;
      if (bytes === undefined) throw captured.invalidType('The "input" option must be a string or a Uint8Array.');
      const names = keys(env);
      const [result, code, message] = native.exec(
        text(command, 'command'), from(args, (value) => text(value, 'args')), bytes, text(cwd, 'cwd'),
        [names, from(names, (name) => text(env[name], `env.${name}`))]);
      if (code !== undefined) throw captured.hostError(code, message);
      const [exit, signal, timedOut, stdout, stderr, truncated] = result;
      const shown = (output) =>
        (encoding === null || encoding === 'buffer' ? captured.toBuffer(output) : native.decode(output, encoding, false));
      return {
        code: exit,
        signal: signal === null ? null : signals[signal] ?? `SIG${signal}`,
        stdout: shown(stdout),
        stderr: shown(stderr),
        truncated,
        timedOut,
      };
    };
    return freeze({ run, exec: run });
  });
}
