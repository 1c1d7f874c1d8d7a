// What the modules of Node have in common: the texts of their errors, and checks of arguments.
0,function (_own, native, captured) {
  'use strict';
  const { Error, RangeError, TypeError, Number, Array, String } = captured.globals;
  const { coded, invalidType } = captured;
  const received = (value) => {
    if (value === null || value === undefined) return `${value}`;
    if (typeof value === 'function') return value.name ? `function ${value.name}` : 'function ';
    if (typeof value === 'object') {
      const name = value.constructor?.name;
      return name ? `an instance of ${name}` : native.inspect(value, -1);
    }
    let shown = native.inspect(value, 0);
    if (shown.length > 28) shown = `${shown.slice(0, 25)}...`;
    return `type ${typeof value} (${shown})`;
  };
  const list = (types) => {
    if (types.length === 1) return types[0];
    if (types.length === 2) return `${types[0]} or ${types[1]}`;
    return `${types.slice(0, -1).join(', ')}, or ${types[types.length - 1]}`;
  };
  const primitives = ['string', 'function', 'number', 'object', 'boolean', 'bigint', 'symbol'];
  // `expected`: a type, a class, or several.
  const argumentType = (name, expected, value) => {
    const all = Array.isArray(expected) ? expected : [expected];
    const types = all.filter((type) => primitives.includes(type));
    const classes = all.filter((type) => !primitives.includes(type));
    const parts = [];
    if (types.length > 0) parts.push(`${types.length > 1 ? 'one of type' : 'of type'} ${list(types)}`);
    if (classes.length > 0) parts.push(`an instance of ${list(classes)}`);
    const what = name.includes('.') ? 'property' : 'argument';
    const shown = name.endsWith(' argument') ? `The ${name}` : `The "${name}" ${what}`;
    return invalidType(`${shown} must be ${parts.join(' or ')}. Received ${received(value)}`);
  };
  const argumentValue = (name, value, why = 'is invalid') =>
    coded(new TypeError(`The ${name.includes('.') ? 'property' : 'argument'} '${name}' ${why}. Received ${native.inspect(value, 1)}`),
      'ERR_INVALID_ARG_VALUE');
  const grouped = (value) => {
    let text = `${value}`;
    if (typeof value === 'bigint' || (Number.isInteger(value) && (value > 2 ** 32 || value < -(2 ** 32)))) {
      text = text.replace(/\B(?=(\d{3})+(?!\d))/g, '_');
    }
    return typeof value === 'bigint' ? `${text}n` : typeof value === 'number' ? text : native.inspect(value, 1);
  };
  const range = (name, bounds, value) =>
    coded(new RangeError(`The value of "${name}" is out of range. It must be ${bounds}. Received ${grouped(value)}`), 'ERR_OUT_OF_RANGE');
  const checks = {
    function: (value, name) => { if (typeof value !== 'function') throw argumentType(name, 'function', value); },
    string: (value, name) => { if (typeof value !== 'string') throw argumentType(name, 'string', value); },
    boolean: (value, name) => { if (typeof value !== 'boolean') throw argumentType(name, 'boolean', value); },
    object: (value, name) => {
      if (value === null || typeof value !== 'object') throw argumentType(name, 'object', value);
    },
    number: (value, name, min = undefined, max = undefined) => {
      if (typeof value !== 'number') throw argumentType(name, 'number', value);
      if ((min !== undefined && value < min) || (max !== undefined && value > max) || Number.isNaN(value)) {
        throw range(name, max === undefined ? `>= ${min}` : `>= ${min} && <= ${max}`, value);
      }
    },
    integer: (value, name, min = Number.MIN_SAFE_INTEGER, max = Number.MAX_SAFE_INTEGER) => {
      if (typeof value !== 'number') throw argumentType(name, 'number', value);
      if (!Number.isInteger(value)) throw range(name, 'an integer', value);
      if (value < min || value > max) throw range(name, `>= ${min} && <= ${max}`, value);
    },
  };
  const unavailable = (what, why) =>
    coded(new Error(`${what} is not available in sessions: ${why}`), 'ERR_FEATURE_UNAVAILABLE_ON_PLATFORM');
  const error = (code, message, Class = Error) => coded(new Class(String(message)), code);
  const abort = (signal) => {
    const thrown = coded(new Error('The operation was aborted'), 'ABORT_ERR');
    thrown.name = 'AbortError';
    if (signal?.reason !== undefined) captured.globals.Object.defineProperty(thrown, 'cause', { value: signal.reason, writable: true, configurable: true });
    return thrown;
  };
  return { received, argumentType, argumentValue, range, checks, unavailable, error, abort };
}
