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

  const { CC } = {
    CC(prompt, options = undefined) {
      if (prompt === undefined) {
        throw new TypeErrorCtor('CC needs a prompt as its first argument');
      }
      if (prompt === null || typeof prompt === 'object' || typeof prompt === 'function' || typeof prompt === 'symbol') {
        const found =
          prompt === null ? 'null' : isArray(prompt) ? 'an array' : typeof prompt === 'object' ? 'an object' : `a ${typeof prompt}`;
        throw new TypeErrorCtor(`The first argument of CC must be a string, not ${found}`);
      }
      const text = wellFormed(`${prompt}`);
      if (options === null || (typeof options !== 'object' && typeof options !== 'undefined')) {
        throw new TypeErrorCtor('The second argument of CC must be an object');
      }
      // JSON would make them null, which means that the option is not given.
      if (options !== undefined) {
        for (const key of keys(options)) {
          if (typeof options[key] === 'number' && !isFinite(options[key])) {
            throw new RangeErrorCtor(`The option ${key} of CC must be a finite number, not ${options[key]}`);
          }
        }
      }
      // What JSON makes of a text is well formed.
      const answer = native.ask(text, options === undefined ? undefined : stringify(options) ?? 'null');
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
