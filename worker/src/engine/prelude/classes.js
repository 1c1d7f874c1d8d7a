// What the classes of the platform have in common: how their prototypes look, and the errors of their methods.
0,function (_own, _native, captured) {
  'use strict';
  const { TypeError, Symbol, Object } = captured.globals;
  const { defineProperty, getOwnPropertyDescriptor } = Object;
  const { coded } = captured;
  const tag = (prototype, name) =>
    defineProperty(prototype, Symbol.toStringTag, { value: name, configurable: true });
  const enumerable = (prototype, names) => {
    for (const name of names) {
      defineProperty(prototype, name, { ...getOwnPropertyDescriptor(prototype, name), enumerable: true });
    }
  };
  const invalidThis = (name) => coded(new TypeError(`Value of "this" must be of type ${name}`), 'ERR_INVALID_THIS');
  const illegal = () => coded(new TypeError('Illegal constructor'), 'ERR_ILLEGAL_CONSTRUCTOR');
  // One name, or two.
  const missing = (first, second = undefined) => coded(new TypeError(second === undefined
    ? `The "${first}" argument must be specified` : `The "${first}" and "${second}" arguments must be specified`),
  'ERR_MISSING_ARGS');
  return { enumerable, illegal, invalidThis, missing, tag };
}
