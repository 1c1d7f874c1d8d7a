// `node:assert` and `node:assert/strict`.
0,function (_own, native, captured) {
  'use strict';
  const { Error, Object, RegExp, Reflect, String, TypeError } = captured.globals;
  const { coded } = captured;
  const { argumentType, argumentValue, checks, error } = captured.part('node_errors');
  const { deepEqual } = captured.part('node_compare');
  const types = captured.part('node_types');

  // Every entry on a line of its own, sorted, so that lines can be compared.
  const lines = (value) => native.inspect(value, 1000, 1e9, 0).split('\n');
  const headers = {
    strictEqual: 'Expected values to be strictly equal:', deepStrictEqual: 'Expected values to be strictly deep-equal:',
    strictEqualObject: 'Expected "actual" to be reference-equal to "expected":', deepEqual: 'Expected values to be loosely deep-equal:',
    notDeepStrictEqual: 'Expected "actual" not to be strictly deep-equal to:', notStrictEqual: 'Expected "actual" to be strictly unequal to:',
    notStrictEqualObject: 'Expected "actual" not to be reference-equal to "expected":',
    notDeepEqual: 'Expected "actual" not to be loosely deep-equal to:', notIdentical: 'Values have same structure but are not reference-equal:',
    notDeepEqualUnequal: 'Expected values not to be loosely deep-equal:',
  };
  const isObject = (value) => (typeof value === 'object' && value !== null) || typeof value === 'function';
  // The lines that differ, with up to two equal ones around them.
  const difference = (actual, expected) => {
    const [a, b] = [lines(actual), lines(expected)];
    const rows = [];
    const [n, m] = [a.length, b.length];
    if (n * m > 4000000) return `+ ${a[0]}\n- ${b[0]}\n...`;
    const common = [];
    for (let i = n; i >= 0; i--) {
      common[i] = new captured.globals.Uint32Array(m + 1);
      if (i < n) for (let j = m - 1; j >= 0; j--) common[i][j] = same(a[i], b[j]) ? common[i + 1][j + 1] + 1 : Math.max(common[i + 1][j], common[i][j + 1]);
    }
    for (let i = 0, j = 0; i < n || j < m;) {
      if (i < n && j < m && same(a[i], b[j])) { rows.push(['  ', a[i]]); i++; j++; } else if (i < n && (j >= m || common[i + 1][j] >= common[i][j + 1])) rows.push(['+ ', a[i++]]);
      else rows.push(['- ', b[j++]]);
    }
    const near = rows.map((_, at) => rows.slice(Math.max(0, at - 2), at + 3).some(([mark]) => mark !== '  '));
    const shown = [];
    rows.forEach(([mark, text], at) => {
      if (near[at] || rows.length < 25) shown.push(mark + text);
      else if (at === 0 || near[at - 1]) shown.push('...');
    });
    return shown.join('\n');
  };
  const same = (a, b) => a === b || (a.endsWith(',') && a.slice(0, -1) === b) || (b.endsWith(',') && b.slice(0, -1) === a);
  const { Math } = captured.globals;
  const generated = (operator, actual, expected) => {
    let kind = operator;
    if (operator === 'strictEqual' && isObject(actual) && isObject(expected)) kind = 'strictEqualObject';
    if (operator === 'deepStrictEqual' || operator === 'strictEqual') {
      const [a, b] = [lines(actual), lines(expected)];
      const plain = a.length === 1 && b.length === 1 && a[0] !== b[0] && !isObject(actual) && !isObject(expected);
      if (plain && (a[0].length + b[0].length <= 75)) return `${headers[kind]}\n\n${a[0]} !== ${b[0]}\n`;
      if (a.join('\n') === b.join('\n')) return `${headers.notIdentical}\n\n${a.join('\n')}\n`;
      return `${headers[kind]}\n+ actual - expected\n\n${difference(actual, expected)}`;
    }
    if (operator === 'notDeepStrictEqual' || operator === 'notStrictEqual') {
      if (operator === 'notStrictEqual' && isObject(actual)) kind = 'notStrictEqualObject';
      const text = lines(actual);
      return text.length === 1 ? `${headers[kind]}${text[0].length > 5 ? '\n\n' : ' '}${text[0]}` : `${headers[kind]}\n\n${text.join('\n')}\n`;
    }
    const [left, right] = [native.inspect(actual, 2), native.inspect(expected, 2)];
    if (operator === 'deepEqual') return `${headers.deepEqual}\n\n${lines(actual).join('\n')}\n\nshould loosely deep-equal\n\n${lines(expected).join('\n')}`;
    if (operator === 'notDeepEqual') return `${headers.notDeepEqual}\n\n${lines(actual).join('\n')}`;
    return `${left} ${operator} ${right}`;
  };

  class AssertionError extends Error {
    constructor(options) {
      checks.object(options, 'options');
      const { message, operator, actual, expected, stackStartFn } = options;
      super(message === undefined ? generated(operator, actual, expected) : String(message));
      this.generatedMessage = message === undefined;
      Object.defineProperty(this, 'name', { value: 'AssertionError', writable: true, configurable: true, enumerable: false });
      this.code = 'ERR_ASSERTION';
      this.actual = actual;
      this.expected = expected;
      this.operator = operator;
      Error.captureStackTrace?.(this, stackStartFn);
    }
    toString() { return `${this.name} [${this.code}]: ${this.message}`; }
  }
  const fail = (message, details) => {
    if (message instanceof Error) throw message;
    const thrown = new AssertionError({ message, ...details });
    thrown.generatedMessage ||= details.generated === true;
    throw thrown;
  };
  const needTwo = (count) => {
    if (count < 2) throw coded(new TypeError('The "actual" and "expected" arguments must be specified'), 'ERR_MISSING_ARGS');
  };
  const truthy = (args, stackStartFn) => {
    const [value, message] = args;
    if (value) return;
    if (args.length === 0) {
      const thrown = new AssertionError({ message: 'No value argument passed to `assert.ok()`', actual: value, expected: true, operator: '==', stackStartFn });
      thrown.generatedMessage = true;
      throw thrown;
    }
    if (message !== undefined && message !== null) fail(message, { actual: value, expected: true, operator: '==', stackStartFn });
    const thrown = new AssertionError({
      message: 'The expression evaluated to a falsy value', actual: value, expected: true, operator: '==', stackStartFn,
    });
    thrown.generatedMessage = true;
    throw thrown;
  };
  function assert(...args) { truthy(args, assert); }
  function ok(...args) { truthy(args, ok); }
  const comparison = (name, operator, holds) => {
    const check = { [name](actual, expected, message) {
      needTwo(arguments.length);
      if (!holds(actual, expected)) fail(message, { actual, expected, operator, stackStartFn: check });
    } }[name];
    return check;
  };
  // eslint-disable-next-line eqeqeq
  const loose = (a, b) => a == b || (a !== a && b !== b);
  const { is } = Object;
  const equal = comparison('equal', '==', loose);
  const notEqual = comparison('notEqual', '!=', (a, b) => !loose(a, b));
  const looseDeep = comparison('deepEqual', 'deepEqual', (a, b) => deepEqual(a, b, false));
  const notLooseDeep = comparison('notDeepEqual', 'notDeepEqual', (a, b) => !deepEqual(a, b, false));
  const strictEqual = comparison('strictEqual', 'strictEqual', is);
  const notStrictEqual = comparison('notStrictEqual', 'notStrictEqual', (a, b) => !is(a, b));
  const deepStrictEqual = comparison('deepStrictEqual', 'deepStrictEqual', (a, b) => deepEqual(a, b, true));
  const notDeepStrictEqual = comparison('notDeepStrictEqual', 'notDeepStrictEqual', (a, b) => !deepEqual(a, b, true));

  const expectedError = (actual, expected, message, operator, stackStartFn) => {
    if (expected === undefined) return;
    if (typeof expected === 'function') {
      if (expected.prototype !== undefined && actual instanceof expected) return;
      if (Error.isPrototypeOf(expected)) {
        const shown = actual instanceof Error ? `"${actual.name}"\n\nError message:\n\n${actual.message}` : `"${native.inspect(actual, 0)}"`;
        fail(message ?? `The error is expected to be an instance of "${expected.name}". Received ${shown}`, { actual, expected, operator, stackStartFn, generated: message === undefined });
      }
      if (Reflect.apply(expected, {}, [actual]) === true) return;
      const name = expected.name ? `"${expected.name}" ` : '';
      fail(message ?? `The ${name}validation function is expected to return "true". Received ${native.inspect(Reflect.apply(expected, {}, [actual]), 1)}`,
        { actual, expected, operator, stackStartFn, generated: message === undefined });
    } else if (expected instanceof RegExp) {
      if (expected.test(String(actual))) return;
      fail(message ?? `The input did not match the regular expression ${native.inspect(expected, 0)}. Input:\n\n${native.inspect(String(actual), 0)}\n`,
        { actual, expected, operator, stackStartFn, generated: message === undefined });
    } else {
      const keys = Object.keys(expected);
      if (expected instanceof Error) keys.push('name', 'message');
      else if (keys.length === 0) throw argumentValue('error', expected, 'may not be an empty object');
      for (const key of keys) {
        if (typeof actual?.[key] === 'string' && expected[key] instanceof RegExp && expected[key].test(actual[key])) continue;
        if (actual !== null && isObject(actual) && key in actual && deepEqual(actual[key], expected[key], true)) continue;
        const picked = new Comparison();
        for (const name of keys) if (isObject(actual) && name in actual) picked[name] = actual[name];
        const wanted = new Comparison();
        for (const name of keys) wanted[name] = expected[name];
        const [left, right] = [isObject(actual) ? picked : actual, wanted];
        fail(message ?? generated('deepStrictEqual', left, right), { actual, expected, operator, stackStartFn, generated: message === undefined });
      }
    }
  };
  class Comparison {}
  const none = captured.globals.Symbol('none');
  const missing = (operator, expected, message) => {
    let text = `Missing expected ${operator === 'rejects' ? 'rejection' : 'exception'}`;
    if (expected?.name) text += ` (${expected.name})`;
    return text + (message ? `: ${message}` : '.');
  };
  const settle = (operator, actual, expected, message, stackStartFn) => {
    if (typeof expected === 'string') {
      if (message !== undefined) throw argumentType('error', ['function', 'Error', 'RegExp', 'Object'], expected);
      [expected, message] = [undefined, expected];
    }
    if (expected !== undefined && !isObject(expected)) throw argumentType('error', ['function', 'Error', 'RegExp', 'Object'], expected);
    if (actual === none) fail(message instanceof Error ? message : missing(operator, expected, message), { actual: undefined, expected, operator, stackStartFn });
    expectedError(actual, expected, message, operator, stackStartFn);
  };
  const thrownBy = (fn) => {
    checks.function(fn, 'fn');
    try { fn(); } catch (thrown) { return thrown; }
    return none;
  };
  const rejectedBy = async (promiseOrFn) => {
    let promise = promiseOrFn;
    if (typeof promise === 'function') {
      promise = promise();
      if (typeof promise?.then !== 'function') throw error('ERR_INVALID_RETURN_VALUE', `Expected instance of Promise to be returned from the "promiseFn" function but got ${captured.part('node_errors').received(promise)}.`, TypeError);
    } else if (typeof promise?.then !== 'function') {
      throw argumentType('promiseFn', ['function', 'Promise'], promise);
    }
    try { await promise; } catch (thrown) { return thrown; }
    return none;
  };
  const unwanted = (operator, thrown, expected, message, stackStartFn) => {
    if (thrown === none) return;
    if (typeof expected === 'string') [expected, message] = [undefined, expected];
    if (expected !== undefined && !(typeof expected === 'function' ? thrown instanceof expected : expected.test(String(thrown)))) throw thrown;
    const details = message ? `: ${message}` : '.';
    fail(`Got unwanted ${operator === 'doesNotReject' ? 'rejection' : 'exception'}${details}\nActual message: "${thrown?.message}"`,
      { actual: thrown, expected, operator, stackStartFn });
  };
  const text = (name, wanted) => {
    const check = { [name](string, regexp, message) {
      if (!types.isRegExp(regexp)) throw argumentType('regexp', 'RegExp', regexp);
      if (typeof string === 'string' && regexp.test(string) === wanted) return;
      const why = typeof string !== 'string' ? `The "string" argument must be of type string. Received ${captured.part('node_errors').received(string)}`
        : `The input ${wanted ? 'did not match' : 'was expected to not match'} the regular expression ${native.inspect(regexp, 0)}. Input:\n\n${native.inspect(string, 0)}\n`;
      fail(message ?? why, { actual: string, expected: regexp, operator: name, stackStartFn: check, generated: message === undefined });
    } }[name];
    return check;
  };
  const methods = {
    fail(message, ...old) {
      if (old.length === 0) fail(message ?? 'Failed', { operator: 'fail', stackStartFn: methods.fail, generated: message === undefined });
      const [expected, own, operator = '!='] = old;
      fail(own, { actual: message, expected, operator, stackStartFn: methods.fail });
    },
    AssertionError, ok, equal, notEqual, deepEqual: looseDeep, notDeepEqual: notLooseDeep, deepStrictEqual, notDeepStrictEqual, strictEqual,
    notStrictEqual,
    throws(fn, expected, message) { settle('throws', thrownBy(fn), expected, message, methods.throws); },
    async rejects(promise, expected, message) { settle('rejects', await rejectedBy(promise), expected, message, methods.rejects); },
    doesNotThrow(fn, expected, message) { unwanted('doesNotThrow', thrownBy(fn), expected, message, methods.doesNotThrow); },
    async doesNotReject(promise, expected, message) { unwanted('doesNotReject', await rejectedBy(promise), expected, message, methods.doesNotReject); },
    ifError(value) {
      if (value === null || value === undefined) return;
      const shown = typeof value === 'object' && typeof value.message === 'string' ? value.message || value.constructor?.name : native.inspect(value, 1);
      throw new AssertionError({ actual: value, expected: null, operator: 'ifError', message: `ifError got unwanted exception: ${shown}`, stackStartFn: methods.ifError });
    },
    match: text('match', true), doesNotMatch: text('doesNotMatch', false),
  };
  Object.assign(assert, methods);
  const strict = Object.assign(function strict(...args) { truthy(args, strict); }, methods, {
    equal: strictEqual, deepEqual: deepStrictEqual, notEqual: notStrictEqual, notDeepEqual: notDeepStrictEqual,
  });
  assert.strict = strict.strict = strict;
  return { assert, strict };
}
