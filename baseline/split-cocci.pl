#!/usr/bin/perl
# SPDX-License-Identifier: GPL-2.0
# split-cocci.pl DIR FILE... - sort the rules in FILE... by the source file that
# they are for, which a line "// file: PATH" names, into DIR/PATH.cocci.
#
# Spatch says nothing about a rule that does not match, so each rule gets a
# script that reports it, and DIR/PATH.expect lists the reports to be had. For a
# rule over a set, "identifier f = { a, b };", that is one for each member.
use strict;
use warnings;
use File::Basename;
use File::Path;

my ($dir, @files) = @ARGV;
my (%rules, %expect);

for my $file (@files) {
	my $concern = basename($file, '.cocci');
	my ($path, $name, $head, $body);
	my $flush = sub {
		return unless defined $name;
		my $rule = "${concern}_$name";
		my $report = "$concern.cocci:$name";
		$rules{$path} .= "\@$rule\@\n$head\@\@\n$body\n";
		my ($var, $set) = $head =~ /\bidentifier (\w+) = \{(.*?)\}/s;
		if (defined $var) {
			$rules{$path} .= "\@script:python\@\nx << $rule.$var;\n\@\@\n" .
				"print(\"MATCHED $report \" + str(x))\n\n";
			push @{$expect{$path}}, "$report $_" for $set =~ /\w+/g;
		} else {
			$rules{$path} .= "\@script:python depends on $rule\@\n\@\@\n" .
				"print(\"MATCHED $report\")\n\n";
			push @{$expect{$path}}, $report;
		}
		undef $name;
	};

	open my $in, '<', $file or die "$file: $!\n";
	my $in_head = 0;
	while (<$in>) {
		if (m{^// file: (\S+)$}) {
			$flush->();
			$path = $1;
		} elsif (/^\@(\w+)\@$/) {
			$flush->();
			die "$file:$.: no \"// file:\" line before this rule\n" unless $path;
			($name, $head, $body, $in_head) = ($1, '', '', 1);
		} elsif (/^\@\@$/) {
			$in_head = 0;
		} elsif (defined $name) {
			$in_head ? $head .= $_ : ($body .= $_);
		}
	}
	$flush->();
}

for my $path (keys %rules) {
	mkpath(dirname("$dir/$path"));
	open my $sp, '>', "$dir/$path.cocci" or die "$dir/$path.cocci: $!\n";
	print $sp $rules{$path};
	open my $ex, '>', "$dir/$path.expect" or die "$dir/$path.expect: $!\n";
	print $ex "$_\n" for @{$expect{$path}};
}
