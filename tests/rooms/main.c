/* SPDX-License-Identifier: Apache-2.0 */
/* What a whole room is linked to: if that needs more than the room may use, it does not link. */
int main(void)
{
	return 0;
}
