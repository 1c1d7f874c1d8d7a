// `CC(prompt, options?)`: asks whoever drives the session and gives the answer, as in durable programs. `native.ask(…)` blocks
// until there is one and throws nothing: it gives [value] or [undefined, name of the error, message].
0,function (native) {
  'use strict';
  const { stringify } = JSON;
  const { defineProperty, keys } = Object;
  const { isFinite } = Number;
  const { isArray } = Array;
  const wellFormed = Function.prototype.call.bind(String.prototype.toWellFormed);
  const TypeErrorCtor = TypeError;
  const RangeErrorCtor = RangeError;
  const hidden = (object, name, value) =>
    defineProperty(object, name, { value, writable: true, enumerable: false, configurable: true });

  class CCError extends Error {}
  // A timeout is a CCError too.
  class CCTimeoutError extends CCError {}
  hidden(CCError.prototype, 'name', 'CCError');
  hidden(CCTimeoutError.prototype, 'name', 'CCTimeoutError');

  const shown = value => {
    if (value === null) return 'null';
    if (typeof value === 'object') return isArray(value) ? 'an array' : 'an object';
    return typeof value === 'undefined' ? 'undefined' : `a ${typeof value}`;
  };
  // An option as JSON; `undefined` if it is not given. JSON would make what it cannot hold `null`, or leave it out, and both mean
  // that the option is not given.
  const optionJson = (name, value) => {
    if (value === undefined || (value === null && name !== 'default')) return undefined;
    const isCount = name === 'timeout_ms' || name === 'retries';
    if (isCount && typeof value !== 'number') {
      throw new TypeErrorCtor(`The option ${name} of CC must be a number, not ${shown(value)}`);
    }
    if (typeof value === 'number' && !isFinite(value)) {
      throw new RangeErrorCtor(`The option ${name} of CC must be a finite number, not ${value}`);
    }
    const json = typeof value === 'function' || typeof value === 'bigint' ? undefined : stringify(value);
    if (json === undefined || (json === 'null' && value !== null)) {
      throw new TypeErrorCtor(`The option ${wellFormed(name)} of CC must be a value that JSON can hold, not ${shown(value)}`);
    }
    return json;
  };
  const optionsJson = options => {
    const names = keys(options);
    let json = '';
    for (let i = 0; i < names.length; i++) {
      const value = optionJson(names[i], options[names[i]]);
      if (value !== undefined) json += `${json && ','}${stringify(names[i])}:${value}`;
    }
    return `{${json}}`;
  };

  const { CC } = {
    CC(prompt, options = undefined) {
      if (prompt === undefined) {
        throw new TypeErrorCtor('CC needs a prompt as its first argument');
      }
      if (typeof prompt !== 'string' && typeof prompt !== 'number' && typeof prompt !== 'boolean') {
        throw new TypeErrorCtor(`The first argument of CC must be a string, not ${shown(prompt)}`);
      }
      if (options !== undefined && (typeof options !== 'object' || options === null || isArray(options))) {
        throw new TypeErrorCtor(`The second argument of CC must be an object, not ${shown(options)}`);
      }
      const answer = native.ask(wellFormed(`${prompt}`), options === undefined ? undefined : optionsJson(options));
      const name = answer[1];
      if (name === undefined) return answer[0];
      const Failure = name === 'CCTimeoutError' ? CCTimeoutError : name === 'TypeError' ? TypeErrorCtor : CCError;
      throw new Failure(answer[2]);
    },
  };
  hidden(globalThis, 'CC', CC);
  hidden(globalThis, 'CCError', CCError);
  hidden(globalThis, 'CCTimeoutError', CCTimeoutError);
}
