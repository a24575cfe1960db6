# Threads, each with an interpreter of its own (so they allocate truly in parallel), that pass work through a queue.
use strict;
use warnings;
use threads;
use Thread::Queue;

my ($batches, $count) = @ARGV;

sub work {
    my ($number, $queue) = @_;
    my $total = 0;
    while (defined(my $seed = $queue->dequeue)) {
        my (%seen, @rows);
        my $state = $seed;
        for my $i (1 .. 2000) {
            $state = ($state * 1103515245 + 12345) % 2147483648;
            my $word = sprintf("k%d", $state % 700);
            push @{ $seen{$word} }, { id => $i, text => "t" x ($state % 50), parts => [ split //, $word ] };
            push @rows, $seen{$word}[-1];
        }
        $total += length join ",", map { "$_=" . scalar @{ $seen{$_} } } sort keys %seen;
        $total += length($_->{text}) + @{ $_->{parts} } for @rows;
    }
    return $total;
}

my $queue = Thread::Queue->new;
$queue->enqueue(1 .. $batches);
$queue->end;
my @workers = map { threads->create(\&work, $_, $queue) } 1 .. $count;
my $sum = 0;
$sum += $_->join for @workers;
print "$sum\n";
