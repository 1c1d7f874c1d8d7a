// `fetch`: requests are made by the host, redirects are followed here, and each of their requests is judged anew.
0,function (_own, _native, captured) {
  'use strict';
  const { Error, Promise, TypeError, Uint8Array, Object } = captured.globals;
  const { begin } = captured.part('exchange');
  const { Request, makeResponse, requestParts } = captured.part('http');
  const { ReadableStream } = captured.part('readable');
  const { URL } = captured.part('url');

  const MOST_REDIRECTS = 20;
  const REDIRECTS = [301, 302, 303, 307, 308];
  const NULL_BODY = [101, 204, 205, 304];
  const OF_BODY = ['content-encoding', 'content-language', 'content-location', 'content-type', 'content-length'];
  const OF_ORIGIN = ['authorization', 'proxy-authorization', 'cookie', 'host'];
  const DEFAULTS = [['accept', '*/*'], ['accept-language', '*'], ['user-agent', 'vm-system'], ['accept-encoding', 'br, gzip, deflate']];

  // Ports of other protocols, as the Fetch standard lists them.
  const BAD_PORTS = ['1', '7', '9', '11', '13', '15', '17', '19', '20', '21', '22', '23', '25', '37', '42', '43', '53', '69', '77', '79', '87', '95',
    '101', '102', '103', '104', '109', '110', '111', '113', '115', '117', '119', '123', '135', '137', '139', '143', '161', '179', '389', '427', '465',
    '512', '513', '514', '515', '526', '530', '531', '532', '540', '548', '554', '556', '563', '587', '601', '636', '989', '990', '993', '995', '1719',
    '1720', '1723', '2049', '3659', '4045', '4190', '5060', '5061', '6000', '6566', '6665', '6666', '6667', '6668', '6669', '6679', '6697', '10080'];

  const withCause = (message, cause) => {
    const error = new TypeError(message);
    if (cause !== undefined) Object.defineProperty(error, 'cause', { value: cause, writable: true, configurable: true });
    return error;
  };

  // The stream of a response's body. `exchange` is set before anything arrives.
  const bodyOf = (state) => {
    const pieces = [];
    let wanted;
    let ended = false;
    let controller;
    const give = (bytes) => {
      controller.enqueue(bytes);
      state.exchange.pull();
    };
    const stream = new ReadableStream({
      type: 'bytes',
      start(made) { controller = made; },
      pull() {
        if (pieces.length > 0) { give(pieces.shift()); return undefined; }
        if (ended) return undefined;
        return new Promise((resolve) => { wanted = resolve; });
      },
      cancel() {
        ended = true;
        state.finish();
        state.exchange.close();
      },
    });
    const wake = () => {
      const resolve = wanted;
      wanted = undefined;
      resolve?.();
    };
    const close = () => {
      if (ended) return;
      ended = true;
      controller.close();
      controller.byobRequest?.respond(0);
      wake();
    };
    return {
      stream,
      data(bytes) {
        if (ended) return;
        if (wanted === undefined) { pieces.push(bytes); return; }
        give(bytes);
        wake();
      },
      end() {
        if (ended) return;
        // At most one piece waits: there was credit for it only.
        while (pieces.length > 0) controller.enqueue(pieces.shift());
        close();
      },
      fail(error) {
        if (ended) return;
        ended = true;
        controller.error(error);
        wake();
      },
    };
  };

  // The decoded stream, by the codings in the order in which they were applied; throws for one that is not known.
  const decoded = (stream, value) => {
    const codings = value.toLowerCase().split(',').map((coding) => coding.trim()).filter((coding) => coding !== '' && coding !== 'identity');
    let result = stream;
    for (const coding of codings.reverse()) {
      const format = { __proto__: null, gzip: 'gzip', 'x-gzip': 'gzip', deflate: 'deflate', br: 'brotli' }[coding];
      if (format === undefined) throw new Error(`the content-encoding ${coding} is not supported (br, gzip, deflate)`);
      const { Decoder } = captured.part('writable');
      result = result.pipeThrough(new Decoder(format));
    }
    return result;
  };

  // Sends the pieces of a stream as the host has credit for them.
  const sendStream = (stream, exchange, waiting, fail) => {
    const reader = stream.getReader();
    const next = () => {
      reader.read().then(({ value, done }) => {
        if (!exchange.isOpen()) { reader.cancel().catch(() => {}); return; }
        if (done) { exchange.send(new Uint8Array(0), true); return; }
        if (!(value instanceof Uint8Array)) {
          reader.cancel().catch(() => {});
          fail(new TypeError('Received non-Uint8Array chunk'));
          return;
        }
        if (value.length === 0) { next(); return; }
        waiting.next = next;
        exchange.send(value, false);
      }, fail);
    };
    next();
  };

  const run = (parts, resolve, reject) => {
    const { signal } = parts;
    let { method, headers, bytes, stream } = parts;
    let url = new URL(parts.url);
    let redirects = 0;
    let body;
    const state = { exchange: undefined, finish: undefined };
    const onAbort = () => {
      state.exchange?.close();
      reject(signal.reason);
      body?.fail(signal.reason);
      if (stream !== undefined && !stream.locked) stream.cancel(signal.reason).catch(() => {});
    };
    state.finish = () => signal.removeEventListener('abort', onAbort);
    const fail = (cause) => {
      state.finish();
      state.exchange?.close();
      if (body !== undefined) body.fail(withCause('terminated', cause));
      else reject(withCause('fetch failed', cause));
    };
    signal.addEventListener('abort', onAbort);

    const redirected = (status, location) => {
      if (parts.redirect === 'error') { fail(new Error('unexpected redirect')); return; }
      let target;
      try { target = new URL(location, url); } catch (error) { fail(error); return; }
      if (target.protocol !== 'http:' && target.protocol !== 'https:') { fail(new Error('URL scheme must be a HTTP(S) scheme')); return; }
      redirects += 1;
      if (redirects > MOST_REDIRECTS) { fail(new Error('redirect count exceeded')); return; }
      if (status !== 303 && stream !== undefined) { fail(new Error('a body that is a stream cannot be sent again for a redirect')); return; }
      if (((status === 301 || status === 302) && method === 'POST') || (status === 303 && method !== 'GET' && method !== 'HEAD')) {
        method = 'GET';
        bytes = undefined;
        stream = undefined;
        headers = headers.filter(([name]) => !OF_BODY.includes(name));
      }
      // Neither credentials nor the names of secrets go to another origin.
      if (target.origin !== url.origin) headers = headers.filter(([name, value]) => !OF_ORIGIN.includes(name) && !value.includes('{secret:'));
      if (target.hash === '') target.hash = url.hash;
      state.exchange.close();
      url = target;
      hop();
    };

    const onHead = (status, statusText, fields) => {
      const list = [];
      for (let i = 0; i < fields.length; i += 2) list.push([fields[i], fields[i + 1]]);
      const valueOf = (wanted) => list.filter(([name]) => name === wanted).map(([, value]) => value).join(', ');
      if (REDIRECTS.includes(status) && parts.redirect !== 'manual' && list.some(([name]) => name === 'location')) {
        redirected(status, valueOf('location'));
        return;
      }
      const shownUrl = new URL(url.href);
      shownUrl.hash = '';
      const isEmpty = method === 'HEAD' || NULL_BODY.includes(status);
      let shown = null;
      if (!isEmpty) {
        body = bodyOf(state);
        try { shown = decoded(body.stream, valueOf('content-encoding')); } catch (error) { body = undefined; fail(error); return; }
      }
      resolve(makeResponse({ status, statusText, headers: list, url: shownUrl.href, redirected: redirects > 0, body: shown }));
    };

    const hop = () => {
      if (url.protocol !== 'http:' && url.protocol !== 'https:') { fail(new Error('unknown scheme')); return; }
      if (BAD_PORTS.includes(url.port)) { fail(new Error('bad port')); return; }
      const flat = [];
      for (const [name, value] of headers) flat.push(name, value);
      for (const [name, value] of DEFAULTS) {
        if (!headers.some(([own]) => own === name)) flat.push(name, value);
      }
      if (bytes !== undefined && bytes.length > 0 && !headers.some(([own]) => own === 'content-length')) flat.push('content-length', `${bytes.length}`);
      const target = new URL(url.href);
      target.hash = '';
      const waiting = { next: undefined };
      let mine;
      const on = {
        head: onHead,
        data(piece) { if (body !== undefined) body.data(piece); else mine.pull(); },
        end() { state.finish(); body?.end(); },
        failed(error) { if (state.exchange === mine) fail(error); },
        sent() {
          const { next } = waiting;
          waiting.next = undefined;
          next?.();
        },
      };
      try {
        mine = begin(method, target.href, flat, bytes, stream === undefined, on);
      } catch (error) {
        fail(error);
        return;
      }
      state.exchange = mine;
      if (stream !== undefined) sendStream(stream, mine, waiting, fail);
    };
    hop();
  };

  const fetch = {
    async fetch(input, init = undefined) {
      const request = new Request(input, init);
      if (request.signal.aborted) throw request.signal.reason;
      const parts = requestParts(request);
      return new Promise((resolve, reject) => { run(parts, resolve, reject); });
    },
  }.fetch;
  return { fetch };
}
