const at = new Date('2024-07-04T12:00:00Z');
for (const timeZone of ['America/Los_Angeles', 'Europe/Berlin', 'Asia/Kolkata', 'Australia/Lord_Howe']) console.log(timeZone, new Intl.DateTimeFormat('en-US', { timeZone, dateStyle: 'medium', timeStyle: 'short' }).format(at), new Intl.DateTimeFormat('en-US', { timeZone, timeZoneName: 'longOffset' }).formatToParts(at).find((p) => p.type === 'timeZoneName').value);
const rtf = new Intl.RelativeTimeFormat('en', { numeric: 'auto' }); console.log(rtf.format(-1, 'day'), rtf.format(3, 'week'), rtf.format(0, 'year'));
const diff = (a, b) => Math.round((b - a) / 864e5); console.log(diff(new Date('2024-01-01'), at), Intl.DateTimeFormat().resolvedOptions().timeZone);
