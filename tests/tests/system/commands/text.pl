# Perl, as the scripts of builds use it.
use strict;
my $out = `echo through`;
open(my $file, '>', 'text') or die;
print $file $out;
close($file);
rename('text', 'renamed') or die;
my $child = fork // die;
exit(3) if $child == 0;
waitpid($child, 0);
die if $? >> 8 != 3 || !unlink('renamed');
print "ok\n";
