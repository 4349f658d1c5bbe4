#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0
# tidy.pl BEFORE AFTER - take out of AFTER, in place, the empty preprocessor
# conditionals and the stray blank lines that removing code has left there.
# Those that BEFORE has already are not ours, and stay.
use strict;
use warnings;

sub slurp {
	open my $fh, '<', $_[0] or die "$_[0]: $!\n";
	local $/;
	return scalar <$fh>;
}

my ($before, $text) = map { slurp($_) } @ARGV;

# Innermost first: a conditional that holds only empty ones is empty.
1 while $text =~ s{^\#[ \t]*if[^\n]*\n\s*(?:\#[ \t]*else[^\n]*\n\s*)?\#[ \t]*endif[^\n]*\n}{}m;

my %ours;
my $blanks = qr/([^\n]*\n)(\n{2,})(?=((?:[^\n]*\n){1,3}))/;
$ours{"$1$3"} = 1 while $before =~ /$blanks/g;
$text =~ s/$blanks/$1 . ($ours{"$1$3"} ? $2 : "\n")/ge;

# A blank line between a function and what follows it.
$text =~ s/^\}\n(?=(\w[^\n]*\n))/index($before, "}\n$1") < 0 ? "}\n\n" : "}\n"/gme;

# No blank line after an opening brace or before a closing one.
$text =~ s/^([^\n]*\{)\n\n(?=\t)/index($before, "$1\n\n") < 0 ? "$1\n" : "$1\n\n"/gme;
$text =~ s/\n\n(\t*\}\n)/index($before, "\n\n$1") < 0 ? "\n$1" : "\n\n$1"/ge;
$text =~ s/\n+\z/\n/;

open my $out, '>', $ARGV[1] or die "$ARGV[1]: $!\n";
print $out $text;
close $out or die "$ARGV[1]: $!\n";
