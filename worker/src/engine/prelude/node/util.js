// `node:util`, `node:util/types`.
0,function (_own, native, captured) {
  'use strict';
  const { Array, Date, Error, Map, Math, Number, Object, Promise, Reflect, RegExp, Set, String, Symbol } = captured.globals;
  const { argumentType, argumentValue, checks, error } = captured.part('node_errors');
  const { deepEqual } = captured.part('node_compare');
  const types = captured.part('node_types');
  const customInspect = Symbol.for('nodejs.util.inspect.custom');
  const customPromisify = Symbol.for('nodejs.util.promisify.custom');

  const defaults = {
    showHidden: false, depth: 2, colors: false, customInspect: true, showProxy: false, maxArrayLength: 100, maxStringLength: 10000,
    breakLength: 80, compact: 3, sorted: false, getters: false, numericSeparator: false,
  };
  function inspect(value, options, ...legacy) {
    let given = options;
    if (typeof options === 'boolean') given = { showHidden: options, depth: legacy[0], colors: legacy[1] };
    const all = { ...defaults, ...given, stylize: (text) => `${text}` };
    if (given?.depth === undefined) all.depth = defaults.depth;
    const depth = all.depth === null || all.depth === Infinity ? 1000 : Number(all.depth);
    return shown(value, depth, all);
  }
  // The inspector runs no code of the script; a value's own method is called here, for the value itself.
  const shown = (value, depth, options) => {
    if (options.customInspect !== false && value !== null && (typeof value === 'object' || typeof value === 'function')) {
      const custom = value[customInspect];
      if (typeof custom === 'function' && custom !== inspect) {
        const result = custom.call(value, depth, options, inspect);
        if (result !== value) return typeof result === 'string' ? result : shown(result, depth, options);
      }
    }
    const compact = options.compact === false ? 0 : options.compact === true ? 1000 : options.compact;
    return native.inspect(value, Math.trunc(depth) || 0, Math.min(options.breakLength, 1e9), compact);
  };
  inspect.custom = customInspect;
  inspect.defaultOptions = defaults;
  const colors = Object.create(null);
  const ranges = [['black red green yellow blue magenta cyan white', 30, 39], ['bgBlack bgRed bgGreen bgYellow bgBlue bgMagenta bgCyan bgWhite', 40, 49]];
  const bright = [['gray redBright greenBright yellowBright blueBright magentaBright cyanBright whiteBright', 90, 39],
    ['bgGray bgRedBright bgGreenBright bgYellowBright bgBlueBright bgMagentaBright bgCyanBright bgWhiteBright', 100, 49]];
  const addColors = (list) => {
    for (const [names, first, off] of list) names.split(' ').forEach((name, index) => { colors[name] = [first + index, off]; });
  };
  Object.assign(colors, {
    reset: [0, 0], bold: [1, 22], dim: [2, 22], italic: [3, 23], underline: [4, 24], blink: [5, 25], inverse: [7, 27], hidden: [8, 28],
    strikethrough: [9, 29], doubleunderline: [21, 24],
  });
  addColors(ranges);
  Object.assign(colors, { framed: [51, 54], overlined: [53, 55] });
  addColors(bright);
  const aliases = { grey: 'gray', blackBright: 'gray', bgGrey: 'bgGray', bgBlackBright: 'bgGray', faint: 'dim', crossedout: 'strikethrough',
    crossedOut: 'strikethrough', strikeThrough: 'strikethrough', conceal: 'hidden', swapColors: 'inverse', swapcolors: 'inverse', doubleUnderline: 'doubleunderline' };
  for (const alias of Object.keys(aliases)) Object.defineProperty(colors, alias, { get: () => colors[aliases[alias]], configurable: true });
  inspect.colors = colors;
  inspect.styles = Object.assign(Object.create(null), {
    special: 'cyan', number: 'yellow', bigint: 'yellow', boolean: 'yellow', undefined: 'grey', null: 'bold', string: 'green',
    symbol: 'green', date: 'magenta', regexp: 'red', module: 'underline',
  });

  // Objects with a method of their own for it are shown by that.
  const withCustom = (value) => (value !== null && typeof value === 'object' && typeof value[customInspect] === 'function'
    ? { text: inspect(value) } : undefined);
  const format = (...values) => formatWithOptions({}, ...values);
  const formatWithOptions = (options, ...values) => {
    if (options === null || typeof options !== 'object') throw argumentType('inspectOptions', 'object', options);
    const plain = Object.keys(options).length === 0 && !values.some((value) => withCustom(value) !== undefined);
    if (plain) return native.format(values);
    const [first, ...rest] = values;
    let text = '';
    let next = 0;
    if (typeof first === 'string') {
      text = rest.length === 0 ? first : first.replace(/%[sdifjoOc%]/g, (mark) => {
        if (mark === '%%') return '%';
        if (next >= rest.length) return mark;
        const value = rest[next++];
        if (mark === '%c') return '';
        if (mark === '%o' || mark === '%O') return inspect(value, options);
        return withCustom(value)?.text ?? native.format([mark, value]);
      });
    } else {
      next = -1;
    }
    const all = next === -1 ? values : rest.slice(next);
    const parts = all.map((value) => (typeof value === 'string' ? value : inspect(value, options)));
    return (typeof first === 'string' ? [text, ...parts] : parts).join(' ');
  };

  const promisify = (original) => {
    checks.function(original, 'original');
    // Defines what these two are as promises.
    if (original === captured.globals.setTimeout || original === captured.globals.setImmediate) captured.part('node_small');
    const custom = original[customPromisify];
    if (custom !== undefined) {
      checks.function(custom, 'util.promisify.custom');
      return Object.defineProperty(custom, customPromisify, { value: custom, configurable: true });
    }
    function promisified(...args) {
      return new Promise((resolve, reject) => {
        Reflect.apply(original, this, [...args, (failure, value) => (failure ? reject(failure) : resolve(value))]);
      });
    }
    Object.setPrototypeOf(promisified, Object.getPrototypeOf(original));
    Object.defineProperty(promisified, customPromisify, { value: promisified, configurable: true });
    return Object.defineProperties(promisified, Object.getOwnPropertyDescriptors(original));
  };
  promisify.custom = customPromisify;
  const callbackify = (original) => {
    checks.function(original, 'original');
    function callbackified(...args) {
      const callback = args.pop();
      checks.function(callback, 'last argument');
      const later = (...values) => captured.globals.process.nextTick(() => Reflect.apply(callback, this, values));
      Reflect.apply(original, this, args).then((value) => later(null, value), (reason) => {
        if (reason) return later(reason);
        const wrapped = error('ERR_FALSY_VALUE_REJECTION', 'Promise was rejected with falsy value');
        wrapped.reason = reason;
        return later(wrapped);
      });
    }
    const descriptors = Object.getOwnPropertyDescriptors(original);
    if (typeof descriptors.length?.value === 'number') descriptors.length.value++;
    if (typeof descriptors.name?.value === 'string') descriptors.name.value += 'Callbackified';
    return Object.defineProperties(callbackified, descriptors);
  };
  const warned = new Set();
  const deprecate = (fn, message, code = undefined) => {
    checks.function(fn, 'fn');
    let done = false;
    function deprecated(...args) {
      if (!done) {
        done = true;
        if (code === undefined || !warned.has(code)) {
          if (code !== undefined) warned.add(code);
          captured.globals.process.emitWarning(message, 'DeprecationWarning', code);
        }
      }
      return new.target ? Reflect.construct(fn, args, new.target) : Reflect.apply(fn, this, args);
    }
    Object.setPrototypeOf(deprecated, fn);
    if (fn.prototype) deprecated.prototype = fn.prototype;
    return deprecated;
  };
  const inherits = (constructor, parent) => {
    for (const [value, name] of [[constructor, 'ctor'], [parent, 'superCtor']]) {
      if (value === undefined || value === null) throw argumentType(name, 'function', value);
    }
    if (parent.prototype === undefined) throw argumentType('superCtor.prototype', 'object', parent.prototype);
    Object.defineProperty(constructor, 'super_', { value: parent, writable: true, configurable: true });
    Object.setPrototypeOf(constructor.prototype, parent.prototype);
  };
  const stripVTControlCharacters = (text) => {
    checks.string(text, 'str');
    // eslint-disable-next-line no-control-regex
    return text.replace(/[\u001B\u009B][[\]()#;?]*(?:(?:(?:[a-zA-Z\d]*(?:;[-a-zA-Z\d/#&.:=?%@~_]*)*)?\u0007)|(?:(?:\d{1,4}(?:;\d{0,4})*)?[\dA-PR-TZcf-ntqry=><~]))/g, '');
  };
  // Nothing that a session writes to is a terminal.
  const styleText = (format, text, options = undefined) => {
    checks.string(text, 'text');
    let styled = text;
    for (const name of [...(Array.isArray(format) ? format : [format])].reverse()) {
      const codes = inspect.colors[name];
      if (codes === undefined) throw argumentValue('format', name, `must be one of: ${Object.keys(inspect.colors).map((key) => `'${key}'`).join(', ')}`);
      styled = `\u001b[${codes[0]}m${styled}\u001b[${codes[1]}m`;
    }
    return options?.validateStream === false ? styled : text;
  };
  // Options of command lines, as `node:util` reads them.
  const parseArgs = (config = {}) => captured.part('node_parse_args').parseArgs(config);
  const debuglog = (set) => {
    const on = new RegExp(`(^|,)${String(set).replace(/[^\w*]/g, '').replace(/\*/g, '.*')}(,|$)`, 'i')
      .test(captured.globals.process.env.NODE_DEBUG ?? '');
    const log = (...args) => { if (on) captured.globals.process.stderr.write(`${String(set).toUpperCase()} 1: ${format(...args)}\n`); };
    Object.defineProperty(log, 'enabled', { get: () => on });
    return log;
  };
  const systemErrors = captured.part('node_errno');
  const util = {
    _extend: (target, source) => (source !== null && typeof source === 'object' ? Object.assign(target, source) : target),
    callbackify, debug: debuglog, debuglog, deprecate, format, formatWithOptions, getSystemErrorMap: () => new Map(systemErrors.map),
    getSystemErrorName: (errno) => systemErrors.name(errno), inherits, inspect, isArray: Array.isArray,
    isBoolean: (v) => typeof v === 'boolean', isBuffer: (v) => captured.globals.Buffer.isBuffer(v), isDeepStrictEqual: (a, b) => deepEqual(a, b, true),
    isNull: (v) => v === null, isNullOrUndefined: (v) => v === null || v === undefined, isNumber: (v) => typeof v === 'number',
    isString: (v) => typeof v === 'string', isSymbol: (v) => typeof v === 'symbol', isUndefined: (v) => v === undefined,
    isRegExp: types.isRegExp, isObject: (v) => v !== null && typeof v === 'object', isDate: types.isDate,
    isError: (v) => types.isNativeError(v) || v instanceof Error, isFunction: (v) => typeof v === 'function',
    isPrimitive: (v) => v === null || (typeof v !== 'object' && typeof v !== 'function'),
    log: (...args) => captured.globals.console.log('%s - %s', new Date().toLocaleTimeString(), format(...args)),
    parseArgs, promisify, stripVTControlCharacters, styleText,
    toUSVString: (text) => captured.wellFormed(text), get TextDecoder() { return captured.globals.TextDecoder; },
    get TextEncoder() { return captured.globals.TextEncoder; }, types,
    aborted: (signal) => new Promise((resolve) => {
      if (signal.aborted) resolve();
      else signal.addEventListener('abort', () => resolve(), { once: true });
    }),
  };
  return { util };
}
