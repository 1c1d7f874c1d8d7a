const semver = require('semver');
console.log(semver.valid('v1.2.3'), semver.satisfies('1.2.9', '^1.2.3 || >3 <4'), semver.sort(['1.10.0', '1.2.0', '1.2.0-beta.2', '1.2.0-beta.11']), semver.inc('1.2.3', 'prerelease', 'rc'), semver.diff('1.2.3', '1.3.0'));
console.log(semver.coerce('v2.3-foo')?.version, semver.parse('1.2.3-alpha.1+build.5'), new semver.Range('~1.2 || 1 - 2').range, semver.minVersion('>=1.2 <2').version, semver.maxSatisfying(['1.1.0', '1.5.2', '2.0.0'], '1.x'), semver.subset('^1.2', '^1'));
try { new semver.SemVer('bad'); } catch (e) { console.log(e.name, e.message); }
