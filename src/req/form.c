/* POST of an HTML form. */
#include "req/req_int.h"

enum verdict
form_start(struct req *rq)
{
	return req_fail(rq, FAULT_NOT_IMPLEMENTED, NULL);
}
