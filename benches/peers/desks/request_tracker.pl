# Makes the users of Request Tracker for the comparison: an agent with the rights of one on the queue, and so many customers,
# who may read and answer what they have asked. All have the given password. Prints their addresses as JSON.

use strict;
use warnings;

use lib '/usr/share/request-tracker5/lib';
use JSON;
use RT -init;

my ($customers, $password) = @ARGV;
my $system = RT->SystemUser;

sub done {
    my ($ok, $said) = @_;
    die(($said // 'refused') . "\n") unless $ok;
}

sub user {
    my %fields = @_;
    my $user = RT::User->new($system);
    done($user->Create(%fields, EmailAddress => "$fields{Name}\@peers.example", Password => $password));
    return $user;
}

my $queue = RT::Queue->new($system);
done($queue->Load('General'));
my $requestors = $queue->RoleGroup('Requestor')->PrincipalObj;
done($requestors->GrantRight(Object => $queue, Right => $_)) for qw(ShowTicket ReplyToTicket);

my $agent = user(Name => 'agent', Privileged => 1);
done($agent->PrincipalObj->GrantRight(Object => $queue, Right => $_))
    for qw(SeeQueue ShowTicket CreateTicket ReplyToTicket ModifyTicket OwnTicket);

my @customers = map { user(Name => "customer$_", Privileged => 0) } 1 .. $customers;
my $known = sub { { name => $_[0]->Name, email => $_[0]->EmailAddress } };
print encode_json({ agent => $known->($agent), customers => [map { $known->($_) } @customers] });
