// What the host modules share: `require`, the table of their makers, and errors. A module is made on first use, since
// most sessions never ask for it. Everything of the language that runs later is captured here: a script may replace it,
// and a policy may take it away.
(function (native, captured) {
  'use strict';
  const ErrorCtor = Error;
  const TypeErrorCtor = TypeError;
  const has = (names, name) => { for (let i = 0; i < names.length; i++) if (names[i] === name) return true; return false; };

  captured.coded = (error, code) => { error.code = code; return error; };
  captured.invalidType = (message) => captured.coded(new TypeErrorCtor(message), 'ERR_INVALID_ARG_TYPE');
  captured.invalidValue = (message) => captured.coded(new TypeErrorCtor(message), 'ERR_INVALID_ARG_VALUE');
  captured.hostError = (code, message) => captured.coded(new ErrorCtor(message), code);

  captured.makeRequire = (referrer, cache) => {
    const specifierOf = (specifier) => {
      if (typeof specifier === 'string' && specifier !== '') return specifier;
      throw captured.invalidType(`The "id" argument must be a non-empty string. Received ${typeof specifier}`);
    };
    const require = function require(id) { return native.require(specifierOf(id), referrer); };
    require.resolve = (id) => native.resolve(specifierOf(id), referrer);
    require.cache = cache;
    require.main = undefined;
    return require;
  };

  const makers = { __proto__: null };
  const made = { __proto__: null };
  captured.defineModule = (names, make) => { for (const name of names) makers[name] = () => make(name); };
  captured.hostModule = (name) => (made[name] ??= makers[name]());
  captured.includes = has;
})
