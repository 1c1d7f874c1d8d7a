// A top level that awaits ends with its code, also when a loser of a race is open; what nothing handles in time is reported, and is no
// end while something is pending.
const first = CC.async('fail early'), second = sleep(5), third = CC.async('fail late');
await second;
console.log('slept');
try { await first; } catch (error) { console.log('caught', error.message); }
const quick = await Promise.race([sleep(1).then(() => 'timer'), third.catch(() => 'handled'), CC.async('open')]);
console.log(quick, typeof waitFor, CC.async.name, CC.async.length, Object.keys(CC).length);
