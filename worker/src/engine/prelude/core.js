// Runs once in the zygote, before any script: captures what the engine needs of the language, and builds the globals
// that are easier to say in JavaScript. `native` holds functions of the engine. Gives the captured functions.
0,function (native) {
  'use strict';
  const global = globalThis;
  const { defineProperty, getOwnPropertyDescriptor, getPrototypeOf, freeze } = Object;
  const reflectDefine = Reflect.defineProperty;
  const reflectGet = Reflect.getOwnPropertyDescriptor;
  const apply = Reflect.apply;
  const ReferenceErrorCtor = ReferenceError;
  const TypeErrorCtor = TypeError;
  const method = (object, name) => getOwnPropertyDescriptor(object, name).value;
  const getter = (object, name) => getOwnPropertyDescriptor(object, name).get;
  const hidden = (name, value) =>
    defineProperty(global, name, { value, writable: true, configurable: true, enumerable: false });

  let site;
  Error.prepareStackTrace = (error, sites) => { site = sites[0]; };
  void new Error('probe').stack;
  const callSite = getPrototypeOf(site);
  site = undefined;
  Error.prepareStackTrace = native.prepareStackTrace;
  // What V8's call sites have and QuickJS's have not. Packages (depd, callsites) call these without a test for them.
  const { getFileName, getLineNumber, getColumnNumber, getFunctionName } = callSite;
  const siteMethods = {
    getThis() { return undefined; },
    getTypeName() { return null; },
    getMethodName() { return null; },
    getEvalOrigin() { return undefined; },
    getPromiseIndex() { return null; },
    getScriptNameOrSourceURL() { return apply(getFileName, this, []); },
    isAsync() { return false; },
    isEval() { return false; },
    isPromiseAll() { return false; },
    isToplevel() { return apply(getFunctionName, this, []) === '<eval>'; },
    toString() {
      const place = `${apply(getFileName, this, [])}:${apply(getLineNumber, this, [])}:${apply(getColumnNumber, this, [])}`;
      const name = apply(getFunctionName, this, []);
      return name ? `${name} (${place})` : place;
    },
  };
  for (const name of Object.keys(siteMethods)) {
    defineProperty(callSite, name, { value: siteMethods[name], writable: true, configurable: true, enumerable: false });
  }

  // `Date()` names the zone. It is a bound function, whose text is that of a built-in one.
  const EngineDate = Date;
  const constructOf = Reflect.construct;
  let dateText;
  const makeDate = function (...args) {
    if (new.target === undefined) return apply(dateText, new EngineDate(), []);
    return constructOf(EngineDate, args, new.target === makeDate ? EngineDate : new.target);
  };
  const DateCtor = makeDate.bind();
  for (const name of ['prototype', 'now', 'parse', 'UTC', 'name', 'length']) {
    defineProperty(DateCtor, name, getOwnPropertyDescriptor(EngineDate, name));
  }
  makeDate.prototype = EngineDate.prototype;
  defineProperty(EngineDate.prototype, 'constructor', { value: DateCtor, writable: true, configurable: true, enumerable: false });
  hidden('Date', DateCtor);

  const mapIterator = getPrototypeOf(new Map()[Symbol.iterator]());
  const setIterator = getPrototypeOf(new Set()[Symbol.iterator]());
  const typedArray = getPrototypeOf(Uint8Array.prototype);
  const captured = {
    __proto__: null,
    errorStack: getter(Error.prototype, 'stack'),
    domExceptionName: getter(DOMException.prototype, 'name'),
    domExceptionMessage: getter(DOMException.prototype, 'message'),
    fileName: callSite.getFileName,
    lineNumber: callSite.getLineNumber,
    columnNumber: callSite.getColumnNumber,
    functionName: callSite.getFunctionName,
    siteFunction: callSite.getFunction,
    functionToString: Function.prototype.toString,
    mapEntries: Map.prototype.entries,
    mapSize: getter(Map.prototype, 'size'),
    mapNext: mapIterator.next,
    setValues: Set.prototype.values,
    setSize: getter(Set.prototype, 'size'),
    setNext: setIterator.next,
    dateGetTime: Date.prototype.getTime,
    dateToISOString: Date.prototype.toISOString,
    regexpSource: getter(RegExp.prototype, 'source'),
    regexpFlag_d: getter(RegExp.prototype, 'hasIndices'),
    regexpFlag_g: getter(RegExp.prototype, 'global'),
    regexpFlag_i: getter(RegExp.prototype, 'ignoreCase'),
    regexpFlag_m: getter(RegExp.prototype, 'multiline'),
    regexpFlag_s: getter(RegExp.prototype, 'dotAll'),
    regexpFlag_u: getter(RegExp.prototype, 'unicode'),
    regexpFlag_v: getter(RegExp.prototype, 'unicodeSets'),
    regexpFlag_y: getter(RegExp.prototype, 'sticky'),
    viewByteLength: getter(DataView.prototype, 'byteLength'),
    viewByteOffset: getter(DataView.prototype, 'byteOffset'),
    viewBuffer: getter(DataView.prototype, 'buffer'),
    objectPrototype: Object.prototype,
    arrayPrototype: Array.prototype,
    functionPrototype: Function.prototype,
    generatorPrototype: getPrototypeOf(function* () {}),
    asyncPrototype: getPrototypeOf(async function () {}),
    asyncGeneratorPrototype: getPrototypeOf(async function* () {}),
    numberValueOf: Number.prototype.valueOf,
    stringValueOf: String.prototype.valueOf,
    booleanValueOf: Boolean.prototype.valueOf,
    bigintValueOf: BigInt.prototype.valueOf,
    symbolValueOf: Symbol.prototype.valueOf,
    bigintToString: BigInt.prototype.toString,
    numberToString: Number.prototype.toString,
    stringSlice: String.prototype.slice,
    symbolDescription: getter(Symbol.prototype, 'description'),
    typedArrayLength: getter(typedArray, 'length'),
    toStringTag: Symbol.toStringTag,
    weakRefDeref: WeakRef.prototype.deref,
    jsonParse: JSON.parse,
    samples: {
      __proto__: null,
      array: [], error: new Error(''), dom_exception: new DOMException(), promise: Promise.resolve(), date: new Date(0), regexp: /x/,
      map: new Map(), set: new Set(), array_buffer: new ArrayBuffer(0), shared_array_buffer: new SharedArrayBuffer(0),
      data_view: new DataView(new ArrayBuffer(0)),
      weak_map: new WeakMap(), weak_set: new WeakSet(), weak_ref: new WeakRef({}),
      plain: {}, number: Object(0), string: Object(''), boolean: Object(false), symbol: Object(Symbol.iterator), bigint: Object(0n),
      arguments: (function () { return arguments; })(), mapped_arguments: native.mappedArguments,
      generator: (function* () {})(), async_generator: (async function* () {})(),
      map_iterator: new Map().entries(), set_iterator: new Set().values(),
      generator_function: function* () {}, async_function: async () => {},
      async_generator_function: async function* () {},
    },
  };

  // Top-level `let`, `const` and `class` of scripts live as properties of the global object, so that a later input can
  // declare them again. Until the declaration is reached, its name is an accessor that throws; not in modules, which do not see a
  // script's names in Node: `const _ = require('lodash')`, where lodash keeps the earlier `globalThis._`.
  const constants = { __proto__: null };
  captured.declare = (name, constant) => {
    delete constants[name];
    const early = reflectDefine(global, name, {
      __proto__: null,
      get() {
        if (native.runsModule()) return undefined;
        throw new ReferenceErrorCtor(`Cannot access '${name}' before initialization`);
      },
      set(value) {
        reflectDefine(global, name,
          { __proto__: null, value, writable: !constant, configurable: true, enumerable: false });
      },
      configurable: true,
      enumerable: false,
    });
    if (!early && !reflectDefine(global, name, { __proto__: null, value: undefined })) return false;
    if (constant) {
      defineProperty(constants, name, {
        __proto__: null,
        get() { return global[name]; },
        set() { throw new TypeErrorCtor('Assignment to constant variable.'); },
        configurable: true,
      });
    }
    return true;
  };
  captured.undeclare = (name) => {
    delete constants[name];
    const now = reflectGet(global, name);
    if (now && now.get) reflectDefine(global, name, { __proto__: null, value: undefined, writable: true });
    else reflectDefine(global, name, { __proto__: null, writable: true });
  };
  defineProperty(global, '__constants__', { value: constants });

  // Timers.
  class Timeout {
    #id; #delay; #repeats; #callback; #args;
    constructor(id, delay, repeats, callback, args) {
      this.#id = id; this.#delay = delay; this.#repeats = repeats; this.#callback = callback; this.#args = args;
    }
    ref() { native.timerRef(this.#id, true); return this; }
    unref() { native.timerRef(this.#id, false); return this; }
    hasRef() { return native.timerHasRef(this.#id); }
    refresh() { native.timerRefresh(this.#id, this.#delay); return this; }
    close() { native.timerClear(this.#id); return this; }
    [Symbol.toPrimitive]() { return this.#id; }
    static idOf(value) {
      if (typeof value === 'number') return value;
      if (typeof value === 'string') return +value;
      if (typeof value === 'object' && value !== null && #id in value) return value.#id;
      return undefined;
    }
  }
  const { idOf } = Timeout;
  delete Timeout.idOf;
  class Immediate {
    #id;
    constructor(id) { this.#id = id; }
    static idOf(value) {
      return typeof value === 'object' && value !== null && #id in value ? value.#id : undefined;
    }
  }
  const immediateId = Immediate.idOf;
  delete Immediate.idOf;
  const check = (callback) => {
    if (typeof callback !== 'function') {
      const error = new TypeErrorCtor('The "callback" argument must be of type function.');
      error.code = 'ERR_INVALID_ARG_TYPE';
      throw error;
    }
  };
  // An integer, or a text of one, as Node takes it.
  let exitCode;
  const checkedExitCode = (code) => {
    if (code === undefined || code === null) return code;
    const number = typeof code === 'string' && code !== '' ? +code : code;
    if (typeof number !== 'number' || (typeof code === 'string' && number !== number)) {
      const shown = typeof code === 'string' ? ` ('${code}')` : typeof code === 'boolean' ? ` (${code})` : '';
      const error = new TypeErrorCtor(`The "code" argument must be of type number. Received type ${typeof code}${shown}`);
      error.code = 'ERR_INVALID_ARG_TYPE';
      throw error;
    }
    if (number % 1 !== 0) {
      const error = new RangeErrorCtor(`The value of "code" is out of range. It must be an integer. Received ${number}`);
      error.code = 'ERR_OUT_OF_RANGE';
      throw error;
    }
    return code;
  };
  // With the context of `node:async_hooks` in which it is registered.
  const bound = (callback) => (captured.bindContext === undefined ? callback : captured.bindContext(callback));
  const clear = (timer) => {
    const id = idOf(timer);
    if (id !== undefined) native.timerClear(id);
  };
  const functions = {
    setTimeout(callback, delay, ...args) {
      check(callback);
      return new Timeout(native.timerAdd(bound(callback), +delay, false, args), +delay, false);
    },
    setInterval(callback, delay, ...args) {
      check(callback);
      return new Timeout(native.timerAdd(bound(callback), +delay, true, args), +delay, true);
    },
    clearTimeout(timer) { clear(timer); },
    clearInterval(timer) { clear(timer); },
    setImmediate(callback, ...args) {
      check(callback);
      return new Immediate(native.immediateAdd(bound(callback), args));
    },
    clearImmediate(immediate) {
      const id = immediateId(immediate);
      if (id !== undefined) native.timerClear(id);
    },
    queueMicrotask(callback) {
      check(callback);
      native.microtask(bound(callback));
    },
  };
  for (const name of Object.keys(functions)) hidden(name, functions[name]);

  // process
  // Values are texts, as in Node. A script changes the copy of its own execution only.
  const ProxyCtor = Proxy;
  const environment = (values) => new ProxyCtor(values, {
    __proto__: null,
    set(target, name, value) {
      native.runSeen();
      target[name] = `${value}`;
      return true;
    },
    defineProperty(target, name, descriptor) {
      native.runSeen();
      return reflectDefine(target, name, 'value' in descriptor ? { ...descriptor, value: `${descriptor.value}` } : descriptor);
    },
  });
  let argv = ['vm-system', 'repl'];
  let env = environment({});
  captured.isEnvironment = (object) => object === env;
  const hrtime = (before) => {
    const now = native.nanoseconds();
    let seconds = Math.floor(now / 1e9);
    let rest = now - seconds * 1e9;
    if (before !== undefined) {
      seconds -= before[0];
      rest -= before[1];
      if (rest < 0) { seconds -= 1; rest += 1e9; }
    }
    return [seconds, rest];
  };
  hrtime.bigint = () => BigInt(native.nanoseconds());
  const stream = (fd, write) => ({
    fd,
    write(chunk, ...more) {
      captured.writeText(fd, write, captured.encoded(chunk, more[0]));
      const callback = more[more.length - 1];
      if (typeof callback === 'function') native.tickAdd(callback, []);
      return true;
    },
    end(chunk, encoding) { if (chunk !== undefined) this.write(chunk, encoding); },
    on() { return this; },
    once() { return this; },
    off() { return this; },
    removeListener() { return this; },
    emit() { return false; },
    listenerCount() { return 0; },
    writable: true,
  });
  const process = {
    title: 'vm-system',
    platform: 'linux',
    arch: native.arch === 'x86_64' ? 'x64' : native.arch === 'aarch64' ? 'arm64' : native.arch,
    pid: 1,
    version: 'v22.12.0',
    versions: freeze({ node: '22.12.0', quickjs: native.engineVersion }),
    release: freeze({ name: 'node' }),
    execPath: '/usr/bin/node',
    execArgv: [],
    features: freeze({}),
    config: freeze({ variables: freeze({}) }),
    ppid: 0,
    argv0: 'vm-system',
    get exitCode() { return exitCode; },
    set exitCode(code) { exitCode = checkedExitCode(code); },
    exit(code) {
      if (code !== undefined) process.exitCode = code;
      captured.emitExit?.('exit', null);
      captured.endOutput();
      native.exit(captured.exitCode(0));
    },
    cwd() { return '/'; },
    nextTick(callback, ...args) { check(callback); native.tickAdd(bound(callback), args); },
    hrtime,
    uptime() { return native.nanoseconds() / 1e9; },
    memoryUsage() {
      const heap = native.heapBytes();
      return { rss: heap, heapTotal: heap, heapUsed: heap, external: 0, arrayBuffers: 0 };
    },
    stdout: stream(1, native.stdout),
    stderr: stream(2, native.stderr),
  };
  // Bytes are text in UTF-8; a character may be in several chunks.
  const decoders = { __proto__: null };
  captured.writeText = (fd, write, chunk) => {
    if (typeof chunk === 'string') {
      const rest = decoders[fd]?.end() ?? '';
      write(rest === '' ? chunk : rest + chunk);
      return;
    }
    decoders[fd] ??= new (captured.part('node_small').string_decoder.StringDecoder)('utf8');
    write(decoders[fd].write(captured.globals.Buffer.from(chunk)));
  };
  // At the end of an execution: a character that is cut short is U+FFFD, as for whoever reads Node's output.
  captured.endOutput = () => {
    const end = (decoder, write) => {
      const rest = decoder?.end() ?? '';
      if (rest !== '') write(rest);
    };
    end(decoders[1], native.stdout);
    end(decoders[2], native.stderr);
  };
  let stdin;
  defineProperty(process, 'stdin', {
    get() { return (stdin ??= captured.part('node_stdin').open()); },
    enumerable: true,
    configurable: true,
  });
  // Whoever has had it in hand may have changed it: the next run gets its own.
  defineProperty(process, 'argv', {
    get() { native.runSeen(); return argv; },
    set(value) { native.runSeen(); argv = value; },
    enumerable: true,
    configurable: true,
  });
  defineProperty(process, 'env', { get: () => env, enumerable: true, configurable: true });
  for (const name of ['on', 'once', 'off', 'addListener', 'removeListener', 'removeAllListeners', 'prependListener', 'prependOnceListener',
    'emit', 'listeners', 'rawListeners', 'listenerCount', 'eventNames', 'setMaxListeners', 'getMaxListeners', 'emitWarning', 'kill', 'chdir',
    'dlopen', 'binding', 'setuid', 'abort']) {
    const call = { [name](...args) { return captured.part('node_process').methods[name](...args); } }[name];
    defineProperty(process, name, { value: call, writable: true, configurable: true, enumerable: false });
  }
  const { floor } = Math;
  const facts = {
    umask: () => 0o22, getuid: () => 65534, geteuid: () => 65534, getgid: () => 65534, getegid: () => 65534, getgroups: () => [],
    cpuUsage: () => ({ user: floor(native.nanoseconds() / 1e3), system: 0 }),
    resourceUsage: () => ({ userCPUTime: floor(native.nanoseconds() / 1e3), systemCPUTime: 0, maxRSS: floor(native.heapBytes() / 1024) }),
    availableMemory: () => native.heapBytes(), constrainedMemory: () => 0, getActiveResourcesInfo: () => [],
    getBuiltinModule: (name) => (native.isBuiltin(name) ? native.require(name, '') : undefined),
  };
  for (const name of Object.keys(facts)) defineProperty(process, name, { value: facts[name], writable: true, configurable: true, enumerable: false });
  defineProperty(process, Symbol.toStringTag, { value: 'process', configurable: true });
  hidden('process', process);
  // What a weak reference was made of or returned lives to the end of the job, as the language requires.
  const kept = [];
  const keep = (target) => {
    native.keeps();
    kept[kept.length] = target;
  };
  captured.release = () => { kept.length = 0; };
  const WeakRefCtor = WeakRef;
  const { construct } = Reflect;
  const weakRef = function WeakRef(target) {
    if (new.target === undefined) throw new TypeErrorCtor("Constructor WeakRef requires 'new'");
    const made = construct(WeakRefCtor, [target], new.target);
    keep(target);
    return made;
  };
  defineProperty(weakRef, 'prototype', { value: WeakRefCtor.prototype, writable: false });
  const deref = function deref() {
    const target = apply(captured.weakRefDeref, this, []);
    if (target !== undefined) keep(target);
    return target;
  };
  for (const [name, value] of [['constructor', weakRef], ['deref', deref]]) {
    defineProperty(WeakRefCtor.prototype, name, { value, writable: true, configurable: true, enumerable: false });
  }
  hidden('WeakRef', weakRef);
  captured.beginRun = (newArgv, newEnv) => {
    argv = newArgv;
    env = environment(newEnv);
    process.exitCode = undefined;
    stdin = undefined;
    captured.beginInput?.();
    for (const fd in decoders) delete decoders[fd];
  };
  // The message that programs know from Node.
  const toISOString = Date.prototype.toISOString;
  const { getTime } = Date.prototype;
  const { isNaN } = Number;
  const RangeErrorCtor = RangeError;
  const shownAs = {
    toISOString() {
      if (isNaN(apply(getTime, this, []))) throw new RangeErrorCtor('Invalid time value');
      return apply(toISOString, this, []);
    },
  };
  defineProperty(Date.prototype, 'toISOString', { value: shownAs.toISOString, writable: true, configurable: true, enumerable: false });
  captured.customInspect = Symbol.for('nodejs.util.inspect.custom');
  captured.inspectCustom = (value) => captured.part('node_util').util.inspect(value);
  captured.exitCode = (unset) => {
    return exitCode === undefined || exitCode === null ? unset : exitCode | 0;
  };
  // `_` is the value of the shell's last input, until a script declares or assigns the name itself.
  let last;
  const getLast = () => last;
  captured.remember = (value) => {
    const own = reflectGet(global, '_');
    if (own !== undefined && own.get !== getLast) return;
    last = value;
    if (own !== undefined) return;
    defineProperty(global, '_', {
      get: getLast,
      set(mine) {
        last = undefined;
        defineProperty(global, '_', { value: mine, writable: true, enumerable: true, configurable: true });
      },
      enumerable: false,
      configurable: true,
    });
  };
  hidden('performance', {
    now() { return native.nanoseconds() / 1e6; },
    get timeOrigin() { return Date.now() - native.nanoseconds() / 1e6; },
    get [Symbol.toStringTag]() { return 'Performance'; },
  });
  for (const name of ['mark', 'measure', 'clearMarks', 'clearMeasures', 'getEntries', 'getEntriesByName', 'getEntriesByType', 'toJSON']) {
    const call = { [name](...args) { return apply(captured.part('performance').methods[name], undefined, args); } }[name];
    defineProperty(global.performance, name, { value: call, writable: true, configurable: true, enumerable: true });
  }
  // QuickJS makes built-in functions when they are first looked at. Made here, they are shared by all sessions.
  const seen = new Set();
  captured.touch = () => {
    const touch = (object, levels) => {
      if (seen.has(object)) return;
      seen.add(object);
      for (const key of Reflect.ownKeys(object)) {
        const { value } = reflectGet(object, key);
        if (levels > 0 && ((typeof value === 'object' && value !== null) || typeof value === 'function')) {
          touch(value, levels - 1);
        }
      }
    };
    touch(global, 3);
    for (const object of [mapIterator, setIterator, typedArray, getPrototypeOf([][Symbol.iterator]())]) touch(object, 1);
    seen.clear();
  };
  captured.apply = apply;
  captured.functionHasInstance = Function.prototype[Symbol.hasInstance];
  captured.ownDescriptor = reflectGet;
  captured.defineOwn = reflectDefine;
  const toWellFormed = String.prototype.toWellFormed;
  captured.wellFormed = (value) => apply(toWellFormed, `${value}`, []);

  // The parts of the platform are evaluated when one of their globals is first used. What they need of the language is in
  // `captured.globals`: a script may replace a global, and a policy may remove it.
  const globals = { __proto__: null };
  captured.globals = globals;
  captured.captureGlobals = () => {
    for (const name of Reflect.ownKeys(global)) {
      if (typeof name === 'string') globals[name] = global[name];
    }
  };
  const parts = { __proto__: null };
  captured.part = (name) => {
    if (parts[name] === undefined) {
      const [make, own] = native.platformPart(name);
      parts[name] = make(own, native, captured);
    }
    return parts[name];
  };
  captured.onFirstUse = (part, names) => {
    for (const name of names) {
      // For parts that use what other parts define.
      defineProperty(globals, name, { __proto__: null, get: () => captured.part(part)[name], configurable: true });
      defineProperty(global, name, {
        __proto__: null,
        get() {
          const value = captured.part(part)[name];
          hidden(name, value);
          return value;
        },
        set(value) { hidden(name, value); },
        configurable: true,
        enumerable: false,
      });
    }
  };
  // The methods that depend on a locale are those of `Intl`.
  const { bigintValueOf, dateGetTime, numberValueOf } = captured;
  const typedArrayKeys = typedArray.keys;
  const stringOf = (value) => {
    if (value === undefined || value === null) throw new TypeErrorCtor('String.prototype method called on null or undefined');
    return `${value}`;
  };
  const listText = (list, length, locales, options) => {
    let text = '';
    for (let i = 0; i < length; i++) {
      const item = list[i];
      if (i > 0) text += ',';
      if (item !== undefined && item !== null) text += `${item.toLocaleString(locales, options)}`;
    }
    return text;
  };
  const dateMethods = { __proto__: null };
  // The zone's name is that of Intl, in English.
  let zoneOf;
  for (const name of ['toString', 'toTimeString']) {
    const own = Date.prototype[name];
    dateMethods[name] = { [name]() {
      const text = apply(own, this, []);
      if (text === 'Invalid Date') return text;
      zoneOf ??= captured.part('intl_date').zoneNames();
      return `${text} (${zoneOf(apply(dateGetTime, this, []))})`;
    } }[name];
  }
  dateText = dateMethods.toString;
  for (const [name, fields] of [['toLocaleString', 'all'], ['toLocaleDateString', 'date'], ['toLocaleTimeString', 'time']]) {
    dateMethods[name] = { [name](locales = undefined, options = undefined) {
      return captured.part('intl_date').dateText(apply(dateGetTime, this, []), locales, options, fields);
    } }[name];
  }
  for (const [owner, methods] of [
    [Number.prototype, { toLocaleString(locales = undefined, options = undefined) {
      return captured.part('intl_number').numberText(apply(numberValueOf, this, []), locales, options);
    } }],
    [BigInt.prototype, { toLocaleString(locales = undefined, options = undefined) {
      return captured.part('intl_number').numberText(apply(bigintValueOf, this, []), locales, options);
    } }],
    [Date.prototype, dateMethods],
    [String.prototype, {
      localeCompare(that, locales = undefined, options = undefined) {
        return captured.part('intl_text').compareText(stringOf(this), `${that}`, locales, options);
      },
      toLocaleUpperCase(locales = undefined) { return captured.part('intl_text').changeCase(stringOf(this), locales, true); },
      toLocaleLowerCase(locales = undefined) { return captured.part('intl_text').changeCase(stringOf(this), locales, false); },
    }],
    [Array.prototype, { toLocaleString(locales = undefined, options = undefined) {
      const list = Object(this);
      const length = +list.length;
      return listText(list, length - (length % 1 || 0), locales, options);
    } }],
    [typedArray, { toLocaleString(locales = undefined, options = undefined) {
      // Throws if it is no typed array, or if its buffer is detached.
      apply(typedArrayKeys, this, []);
      return listText(this, apply(captured.typedArrayLength, this, []), locales, options);
    } }],
  ]) {
    for (const name of Object.keys(methods)) {
      defineProperty(owner, name, { value: methods[name], writable: true, configurable: true, enumerable: false });
    }
  }
  // What the console shows of objects whose state is in private fields: an object, or a list of names and values in turn.
  const views = [];
  captured.showAs = (view) => { views[views.length] = view; };
  captured.view = (object) => {
    for (let i = 0; i < views.length; i++) {
      const shown = views[i](object);
      if (shown !== undefined) return shown;
    }
    return undefined;
  };
  hidden('global', global);
  return captured;
}
