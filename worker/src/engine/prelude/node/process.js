// What `process` has beside the globals' part: events, warnings, facts that Node's programs ask for.
0,function (_own, native, captured) {
  'use strict';
  const { Error, Set, process } = captured.globals;
  const { events } = captured.part('node_events');
  const { argumentType, unavailable } = captured.part('node_errors');
  const emitter = new events();
  const warned = new Set();
  const methods = { __proto__: null };
  // The engine emits these itself, if something listens.
  const atTheEnd = ['beforeExit', 'exit', 'uncaughtException', 'uncaughtExceptionMonitor', 'unhandledRejection'];
  const adds = ['on', 'once', 'addListener', 'prependListener', 'prependOnceListener'];
  for (const name of ['on', 'once', 'off', 'addListener', 'removeListener', 'removeAllListeners', 'prependListener', 'prependOnceListener', 'emit',
    'listeners', 'rawListeners', 'listenerCount', 'eventNames', 'setMaxListeners', 'getMaxListeners']) {
    methods[name] = (...args) => {
      if (adds.includes(name) && atTheEnd.includes(args[0])) native.processListens();
      const result = emitter[name](...args);
      return result === emitter ? process : result;
    };
  }
  let exiting = false;
  captured.forgetListeners = () => {
    exiting = false;
    for (const name of atTheEnd) emitter.removeAllListeners(name);
  };
  // `unset`: the exit code that the listeners see unless the script has set one.
  captured.emitExit = (name, code, unset = null) => {
    if (exiting) return;
    if (name === 'exit') exiting = true;
    if (code !== null) process.exitCode = code;
    const shown = process.exitCode ?? 0;
    if (unset !== null) process.exitCode ??= unset;
    emitter.emit(name, shown);
  };
  captured.uncaught = (thrown, origin) => {
    emitter.emit('uncaughtExceptionMonitor', thrown, origin);
    return emitter.emit('uncaughtException', thrown, origin);
  };
  captured.rejected = (reason, promise) => {
    if (emitter.emit('unhandledRejection', reason, promise)) return true;
    if (emitter.listenerCount('uncaughtException') === 0) return false;
    let thrown = reason;
    if (!(reason instanceof Error)) {
      thrown = captured.coded(new Error('This error originated either by throwing inside of an async function without a catch block, or by rejecting a promise ' +
        `which was not handled with .catch(). The promise rejected with the reason "${native.inspect(reason, 0)}".`), 'ERR_UNHANDLED_REJECTION');
    }
    return captured.uncaught(thrown, 'unhandledRejection');
  };
  methods.emitWarning = (warning, type = 'Warning', code = undefined) => {
    let name = type;
    let detail;
    if (type !== null && typeof type === 'object') ({ type: name = 'Warning', code, detail } = type);
    let shown = warning;
    if (typeof warning === 'string') {
      shown = new Error(warning);
      shown.name = name;
      if (code !== undefined) shown.code = code;
      if (detail !== undefined) shown.detail = detail;
    } else if (!(warning instanceof Error)) {
      throw argumentType('warning', ['string', 'Error'], warning);
    }
    process.nextTick(() => {
      emitter.emit('warning', shown);
      const key = `${shown.code ?? ''}${shown.message}`;
      if (shown.name === 'DeprecationWarning' && warned.has(key)) return;
      warned.add(key);
      native.stderr(`(node:1) ${shown.code === undefined ? '' : `[${shown.code}] `}${shown.name}: ${shown.message}\n`);
    });
  };
  for (const [name, why] of [['kill', 'a session sees no other process'], ['chdir', 'the folder of a session is its worktree'],
    ['dlopen', 'sessions load no native code'], ['binding', 'it is internal to Node'], ['setuid', 'the rights of a session are its template\'s']]) {
    methods[name] = () => { throw unavailable(`process.${name}`, why); };
  }
  methods.abort = () => process.exit(134);
  return { methods };
}
