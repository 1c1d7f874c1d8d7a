// Modules of which nothing is available: packages load them for what they rarely use. Each function is refused by name when it is
// called.
0,function (_own, _native, captured) {
  'use strict';
  const { Object } = captured.globals;
  const { unavailable } = captured.part('node_errors');
  const refused = (module, why, names, facts = {}) => {
    const exports = { ...facts };
    for (const name of names.split(' ')) {
      exports[name] = { [name]: function () { throw unavailable(`${module}.${name}`, why); } }[name];
    }
    Object.defineProperty(exports, 'default', { value: exports, enumerable: false });
    return exports;
  };
  const network = 'sessions have no sockets; `fetch`, `http` and `https` make requests';
  return {
    child_process: refused('child_process', "a session starts no processes; the module 'exec' runs commands that the operator lists",
      'spawn spawnSync exec execSync execFile execFileSync fork ChildProcess'),
    worker_threads: refused('worker_threads', 'a session is one thread',
      'Worker receiveMessageOnPort moveMessagePortToContext markAsUntransferable',
      { get BroadcastChannel() { return captured.globals.BroadcastChannel; }, get MessageChannel() { return captured.globals.MessageChannel; }, get MessagePort() { return captured.globals.MessagePort; }, isMainThread: true, parentPort: null, threadId: 0, workerData: null, resourceLimits: {} }),
    cluster: refused('cluster', 'a session is one process', 'fork setupPrimary setupMaster disconnect', {
      isPrimary: true, isMaster: true, isWorker: false, workers: {},
    }),
    vm: refused('vm', 'a session has one set of globals', 'Script createContext runInContext runInNewContext runInThisContext compileFunction measureMemory',
      { isContext: () => false }),
    net: refused('net', network, 'connect createConnection createServer Socket Server', {
      isIP: (text) => (isIPv4(text) ? 4 : isIPv6(text) ? 6 : 0), isIPv4: (text) => isIPv4(text), isIPv6: (text) => isIPv6(text),
    }),
    tls: refused('tls', network, 'connect createServer createSecureContext TLSSocket Server', { rootCertificates: [] }),
    dns: refused('dns', network, 'lookup resolve resolve4 resolve6 reverse lookupService setServers getServers Resolver', {
      promises: refused('dns.promises', network, 'lookup resolve resolve4 resolve6 reverse Resolver'),
    }),
    v8: refused('v8', 'it is about the engine of Node', 'getHeapSnapshot getHeapStatistics setFlagsFromString serialize deserialize writeHeapSnapshot'),
  };
  function isIPv4(text) {
    return /^(?:(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)(?:\.(?!$)|$)){4}$/.test(`${text}`);
  }
  function isIPv6(text) {
    try { new captured.globals.URL(`http://[${`${text}`.replace(/%.*$/, '')}]/`); return `${text}`.includes(':'); } catch { return false; }
  }
}
