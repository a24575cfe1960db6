# Hashes, arrays and strings: words are counted, indexed, sorted, joined and replaced.
use strict;
use warnings;

my $count = shift;
my $total = 0;
for my $round (1 .. 2) {
    my (%seen, %index, @lines);
    my $state = 4711;
    for my $i (1 .. $count) {
        $state = ($state * 1103515245 + 12345) % 2147483648;
        my $word = sprintf("w%x", $state % ($count / 4));
        $seen{$word}++;
        push @{ $index{ substr($word, 0, 3) } }, $i;
        push @lines, "$word:" . ($state % 1000) . ":" . ("y" x ($state % 40)) if $i % 2;
    }
    for my $line (@lines) {
        my ($word, $number, $rest) = split /:/, $line;
        $total += $number + length $rest;
        $line =~ s/y{3}/z/g;
    }
    my $joined = join ",", map { "$_=$seen{$_}" } sort { $seen{$b} <=> $seen{$a} || $a cmp $b } keys %seen;
    $total += length $joined;
    $total += scalar @{ $index{$_} } for keys %index;
    delete $seen{$_} for grep { $seen{$_} > 4 } keys %seen;
    $total += scalar keys %seen;
}
print "$total\n";
