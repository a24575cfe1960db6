# Hashes, strings, regular expressions, sorting, closures, and forks with pipes.
use strict; use warnings;
use List::Util qw(sum shuffle reduce);
use Digest::MD5 qw(md5_hex);
my $x = 42;
sub rnd { $x = ($x * 1103515245 + 12345) & 0x7fffffff; return $x % $_[0]; }

my %index;
for my $i (1 .. 60000) {
    my $key = "key" . rnd(20000);
    push @{ $index{$key}{list} }, "v" x rnd(80);
    $index{$key}{count}++;
}
print "keys ", scalar(keys %index), " ", md5_hex(join ",", map { "$_:$index{$_}{count}" } sort keys %index), "\n";
delete $index{$_} for grep { $index{$_}{count} % 2 } sort keys %index;
print "left ", scalar(keys %index), "\n";

my $text = join " ", map { join "", map { chr(97 + rnd(26)) } 1 .. 1 + rnd(9) } 1 .. 60000;
my %seen;
$seen{$1}++ while $text =~ /\b(\w*?[aeiou]{2}\w*)\b/g;
print "words ", scalar(keys %seen), " ", (sort { $seen{$b} <=> $seen{$a} || $a cmp $b } keys %seen)[0], "\n";
(my $changed = $text) =~ s/(\w)(\w+)/\u$1$2/g;
print "case ", md5_hex($changed), "\n";

my $grown = "";
$grown .= chr(65 + $_ % 26) x ($_ % 37) for 1 .. 60000;
print "grown ", length $grown, " ", md5_hex($grown), "\n";

my @sorted = sort { $a->[1] <=> $b->[1] || $a->[0] cmp $b->[0] } map { [ $_, length ] } split / /, $text;
print "sorted ", md5_hex(join ",", map { $_->[0] } @sorted), "\n";
my @closures = map { my $n = $_; sub { $n * $_[0] } } 1 .. 20000;
print "closures ", sum(map { $_->(3) } @closures), "\n";
my $tree = reduce { { left => $a, right => $b } } 1 .. 20000;
undef $tree;

for my $n (1 .. 8) {
    pipe(my $in, my $out);
    my $pid = fork // die;
    if (!$pid) { close $in; print $out md5_hex("x" x (100000 * $n) . $text); close $out; exit 0; }
    close $out; my $line = <$in>; waitpid $pid, 0;
    print "child $n $? $line\n";
}
