#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0
# edit.pl RULES TREE - apply the anchored edits in RULES to the files of TREE.
# RULES explains its own syntax. A rule that matches nothing is an error.
use strict;
use warnings;

my ($rules, $tree) = @ARGV;
my ($file, @text, $rule);
my $failed = 0;

sub complain {
	(my $name = $rules) =~ s{.*/}{};
	warn "derive: $name: '$rule' in $file: $_[0]\n";
	$failed = 1;
}

sub save {
	return unless defined $file;
	open my $fh, '>', "$tree/$file" or die "$tree/$file: $!\n";
	print $fh @text;
	close $fh or die "$tree/$file: $!\n";
}

sub find {
	my ($re, $from) = @_;
	for my $i ($from .. $#text) {
		return $i if $text[$i] =~ $re;
	}
	return -1;
}

sub cut_range {
	my ($from, $to, $keep_last) = @_;
	my $first = find($from, 0);
	return complain("no line matches the start") if $first < 0;
	return complain("the start is not unique") if find($from, $first + 1) >= 0;
	my $last = find($to, $first + 1);
	return complain("no line matches the end") if $last < 0;
	splice @text, $first, $last - $first + !$keep_last;
}

sub cut_last {
	my ($re, $before, @blank) = @_;
	my $i = find($before, 0);
	return complain("no line matches what it comes before") if $i < 0;
	return complain("what it comes before is not unique") if find($before, $i + 1) >= 0;
	while (--$i >= 0) {
		return splice @text, $i, 1, @blank if $text[$i] =~ $re;
	}
	complain("no line matches");
}

# First and last line of a function's definition.
sub function {
	my ($name) = @_;
	for (my $i = 0; $i < @text; $i++) {
		next unless $text[$i] =~ /^\w.*\b\Q$name\E\(/ and $text[$i] !~ /;$/;
		my $end = find(qr/^}/, $i);
		my $semi = find(qr/;$/, $i);
		my $brace = find(qr/^{/, $i);
		return ($i, $end) if $brace >= 0 and $brace < $semi;
	}
	return;
}

sub cut_case {
	my ($label, $func) = @_;
	my ($first, $last) = defined $func ? function($func) : (0, $#text);
	return complain("no such function") unless defined $first;
	my $i = find(qr/^\t+case \Q$label\E:/, $first);
	return complain("no such label") if $i < 0 or $i > $last;

	my ($indent) = $text[$i] =~ /^(\t+)/;
	my $other = qr/^$indent(case\b.*|default):/;
	my $end = $i + 1;

	# A body that another label shares stays.
	if ($text[$i - 1] !~ $other and $text[$end] !~ $other) {
		my $block = $text[$end] =~ /^$indent\{/ || $text[$i] =~ /\{$/;
		while ($end <= $last) {
			last if $text[$end] =~ $other or $text[$end] =~ /^#/;
			if ($text[$end] =~ /^$indent\}/) {
				last unless $block;
				$block = 0;
			}
			$end++;
		}
		return complain("no end of the body") if $end > $last;
	}
	splice @text, $i, $end - $i;
}

open my $in, '<', $rules or die "$rules: $!\n";
while ($rule = <$in>) {
	chomp $rule;
	next if $rule =~ /^\s*(#|$)/;
	if ($rule =~ /^file (\S+)$/) {
		save();
		$file = $1;
		open my $fh, '<', "$tree/$file" or die "$rules: $tree/$file: $!\n";
		@text = <$fh>;
	} elsif ($rule =~ m{^line /(.*)/$}) {
		my $re = qr/$1/;
		my @kept = grep { $_ !~ $re } @text;
		complain("no line matches") if @kept == @text;
		@text = @kept;
	} elsif ($rule =~ m{^(range|until) /(.*)/ \.\. /(.*)/$}) {
		cut_range(qr/$2/, qr/$3/, $1 eq 'until');
	} elsif ($rule =~ m{^last /(.*)/ before /(.*)/( =>)?$}) {
		cut_last(qr/$1/, qr/$2/, $3 ? "\n" : ());
	} elsif ($rule =~ /^case (\S+)(?: in (\w+))?$/) {
		cut_case($1, $2);
	} elsif ($rule =~ m{^subst /(.*)/ => (.*)$}) {
		my ($re, $new) = (qr/$1/, $2);
		my $n = 0;
		s/$re/$new/g and $n++ for @text;
		complain("no line matches") unless $n;
	} else {
		die "$rules: $.: not a rule: $rule\n";
	}
}
save();
exit $failed;
