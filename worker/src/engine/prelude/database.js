// The `database` host module: SQLite databases of the session's workspace. `native.database(kind, database, sql, names,
// values)` asks the host and throws nothing: it gives [value] or [undefined, code, message].
0,function (native, captured) {
  'use strict';
  const { isArray, from } = Array;
  const { isView } = ArrayBuffer;
  const { keys, getPrototypeOf, prototype: objectPrototype } = Object;
  const Bytes = Uint8Array;
  const Buffers = ArrayBuffer;
  const DateCtor = Date;
  const toISOString = captured.dateToISOString;

  captured.defineModule(['database'], () => {
    let current = 'main';
    const call = (kind, sql, names, values) => {
      const [value, code, message] = native.database(kind, current, sql, names, values);
      if (code !== undefined) throw captured.hostError(code, message);
      return value;
    };
    const sqlOf = (sql) => {
      if (typeof sql === 'string') return sql;
      throw captured.invalidType(`The "sql" argument must be of type string. Received ${typeof sql}`);
    };
    const valueOf = (value, where) => {
      switch (typeof value) {
        case 'undefined': return null;
        case 'boolean': case 'number': case 'bigint': case 'string': return value;
        case 'object':
          if (value === null || value instanceof Bytes) return value;
          if (value instanceof Buffers) return new Bytes(value);
          if (isView(value)) return new Bytes(value.buffer, value.byteOffset, value.byteLength);
          if (value instanceof DateCtor) return captured.apply(toISOString, value, []);
      }
      throw captured.invalidType(`The parameter ${where} is no value for a database: ${typeof value}`);
    };
    // One array or one plain object stands for all parameters; anything else is one parameter each.
    const plain = (value) => {
      if (typeof value !== 'object' || value === null || isArray(value)) return false;
      const prototype = getPrototypeOf(value);
      return prototype === objectPrototype || prototype === null;
    };
    const run = (kind, sql, given) => {
      sql = sqlOf(sql);
      if (given.length === 1 && plain(given[0])) {
        const names = keys(given[0]);
        return call(kind, sql, names, from(names, (name) => valueOf(given[0][name], name)));
      }
      const list = given.length === 1 && isArray(given[0]) ? given[0] : given;
      return call(kind, sql, undefined, from(list, (value, index) => valueOf(value, index + 1)));
    };
    const bytes = (row) => {
      for (const name of keys(row)) if (row[name] instanceof Bytes) captured.toBuffer(row[name]);
    };
    return {
      configure(driver, name = 'main') {
        if (driver !== undefined && !captured.includes(['sqlite3', 'sqlite'], driver)) {
          throw captured.invalidValue(`The driver must be 'sqlite3'. Received ${String(driver)}`);
        }
        if (typeof name !== 'string') throw captured.invalidType('The name of the database must be of type string.');
        const before = current;
        current = name;
        try { call('configure', '', undefined, []); } catch (error) { current = before; throw error; }
      },
      query(sql, ...parameters) {
        const rows = run('query', sql, parameters);
        for (let i = 0; i < rows.length; i++) bytes(rows[i]);
        return rows;
      },
      exec(sql, ...parameters) { return run('exec', sql, parameters); },
      close() { call('close', '', undefined, []); },
    };
  });
}
