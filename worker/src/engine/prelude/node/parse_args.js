// `util.parseArgs`: the options of a command line.
0,function (_own, _native, captured) {
  'use strict';
  const { Array, Object, TypeError, process } = captured.globals;
  const { argumentType, argumentValue, checks, error } = captured.part('node_errors');
  const fail = (code, message) => error(code, message, TypeError);
  const parseArgs = (config) => {
    checks.object(config, 'config');
    const { options = {}, strict = true, tokens: wanted = false, allowNegative = false } = config;
    const args = config.args ?? process.argv.slice(2);
    const allowPositionals = config.allowPositionals ?? !strict;
    if (!Array.isArray(args)) throw argumentType('args', 'Array', args);
    checks.object(options, 'options');
    for (const [name, option] of Object.entries(options)) {
      checks.object(option, `options.${name}`);
      if (option.type !== 'string' && option.type !== 'boolean') throw argumentType(`options.${name}.type`, "('string|boolean')", option.type);
      if (option.short !== undefined && option.short.length !== 1) throw argumentValue(`options.${name}.short`, option.short, 'must be a single character');
    }
    const named = (short) => Object.keys(options).find((name) => options[name].short === short) ?? short;
    const typeOf = (name) => (Object.hasOwn(options, name) ? options[name].type : undefined);
    const tokens = [];
    const rest = [...args];
    let index = -1;
    while (rest.length > 0) {
      const arg = rest.shift();
      index++;
      if (arg === '--') {
        tokens.push({ kind: 'option-terminator', index });
        for (const value of rest) tokens.push({ kind: 'positional', index: ++index, value });
        break;
      }
      const option = (name, rawName, value, inline) => {
        let given = value;
        let at = index;
        if (given === undefined && typeOf(name) === 'string' && rest.length > 0 && (rest[0] === '-' || !rest[0].startsWith('-') || /^-\d/.test(rest[0]) === false && !strict)) {
          given = rest.shift();
          at = index++;
          inline = false;
        }
        tokens.push({ kind: 'option', name, rawName, index: at, value: given, inlineValue: given === undefined ? undefined : inline });
      };
      if (/^--[^=]/.test(arg)) {
        const equals = arg.indexOf('=');
        if (equals === -1) option(arg.slice(2), arg, undefined, undefined);
        else option(arg.slice(2, equals), arg.slice(0, equals), arg.slice(equals + 1), true);
      } else if (/^-[^-]/.test(arg)) {
        let letters = arg.slice(1);
        while (letters !== '') {
          const name = named(letters[0]);
          const after = letters.slice(1);
          if (typeOf(name) === 'string' && after !== '') {
            option(name, `-${letters[0]}`, after, true);
            break;
          }
          option(name, `-${letters[0]}`, undefined, undefined);
          letters = after;
        }
      } else {
        tokens.push({ kind: 'positional', index, value: arg });
      }
    }
    const values = { __proto__: null };
    const positionals = [];
    for (const token of tokens) {
      if (token.kind === 'positional') {
        if (!allowPositionals) throw fail('ERR_PARSE_ARGS_UNEXPECTED_POSITIONAL', `Unexpected argument '${token.value}'. This command does not take positional arguments`);
        positionals.push(token.value);
        continue;
      }
      if (token.kind !== 'option') continue;
      let { name, value } = token;
      let on = true;
      if (allowNegative && name.startsWith('no-') && typeOf(name) === undefined && typeOf(name.slice(3)) === 'boolean') {
        name = name.slice(3);
        on = false;
      }
      const type = typeOf(name);
      if (strict) {
        if (type === undefined) throw fail('ERR_PARSE_ARGS_UNKNOWN_OPTION', `Unknown option '${token.rawName}'${allowPositionals ? `. To specify a positional argument starting with a '-', place it at the end of the command after '--', as in '-- "${token.rawName}"` : ''}`);
        const shown = options[name].short ? `-${options[name].short}, --${name}` : `--${name}`;
        if (type === 'string' && value === undefined) throw fail('ERR_PARSE_ARGS_INVALID_OPTION_VALUE', `Option '${shown} <value>' argument missing`);
        if (type === 'boolean' && value !== undefined) throw fail('ERR_PARSE_ARGS_INVALID_OPTION_VALUE', `Option '${shown}' does not take an argument`);
      }
      if (name === '__proto__') continue;
      const result = value === undefined ? on : value;
      if (options[name]?.multiple) (values[name] ??= []).push(result);
      else values[name] = result;
    }
    for (const [name, option] of Object.entries(options)) {
      if (option.default !== undefined && values[name] === undefined) values[name] = option.default;
    }
    return wanted ? { values, positionals, tokens } : { values, positionals };
  };
  return { parseArgs };
}
