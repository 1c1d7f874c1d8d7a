// HTTP exchanges: what `fetch` and the modules `http` and `https` have in common. The engine makes the calls.
0,function (own, _native, captured) {
  'use strict';
  const { Error, Uint8Array } = captured.globals;
  const { coded } = captured;
  // As in `HTTP_PIECE_BYTES`.
  const PIECE = 60 * 1024;
  const EMPTY = new Uint8Array(0);

  const failure = (code, message) => coded(new Error(message), code);
  own.handle((list) => {
    for (const item of list) {
      const exchange = item[0];
      // Closed by what arrived before it.
      if (!exchange.isOpen) continue;
      const { on } = exchange;
      if (item[1] === 'end' || item[1] === 'failed') exchange.isOpen = false;
      switch (item[1]) {
        case 'sent': exchange.sent(); break;
        case 'head': on.head(item[2], item[3], item[4], item[5]); break;
        case 'data': on.data(item[2]); break;
        case 'end': on.end(); break;
        default: on.failed(failure(item[2], item[3])); break;
      }
    }
  });

  // Begins an exchange; throws what refuses it. `headers`: names and values in turn. `on`: `head(status, reason, headers, http2)`,
  // `data(bytes)`, `end()`, `failed(error)`, `sent()`: there is credit for more of the body. A piece of the response arrives after the
  // head, and after each `pull()` the next one.
  const begin = (method, url, headers, bytes, end, on) => {
    const whole = bytes ?? EMPTY;
    const first = whole.length > PIECE ? whole.subarray(0, PIECE) : whole;
    // What is not sent yet of the bytes that were given.
    let rest = whole.subarray(first.length);
    let last = end;
    let ready = first.length === 0;
    // The engine holds it while the exchange is open, no longer than the execution: nothing else may.
    const exchange = {
      on,
      isOpen: true,
      sent() {
        ready = true;
        if (rest.length > 0) exchange.next();
        else if (!last) on.sent();
      },
      next() {
        const piece = rest.subarray(0, PIECE);
        rest = rest.subarray(piece.length);
        ready = false;
        own.send(number, piece, last && rest.length === 0);
      },
    };
    const [number, code, message] = own.open(method, url, headers, first, end && first.length === whole.length, exchange);
    if (code !== undefined) throw failure(code, message);
    return {
      pull() { own.pull(number); },
      close() {
        if (!exchange.isOpen) return;
        exchange.isOpen = false;
        own.close(number);
      },
      // The next bytes of the body; only after `sent()`, or at the beginning if there were none.
      send(more, isLast) {
        rest = more;
        last = isLast;
        if (ready) exchange.next();
      },
      isOpen: () => exchange.isOpen,
    };
  };
  return { begin, failure };
}
